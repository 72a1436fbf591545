"""Teaching: what turns lessons into notebooks, says what a machine can do, and checks what a learner hands in."""
