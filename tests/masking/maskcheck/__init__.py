"""What the evidence about masks is made with: an oracle, walks, spellings, reasons for refusals, other engines."""
