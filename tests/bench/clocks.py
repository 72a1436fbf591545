"""Two clocks. Wall time is what a user waits for; on a busy machine it also counts the time of others.

The time of the processor that a process spends in all its threads leaves that out: a mask of 0.6 ms cannot become one
of 8 ms because another process had its turn in between.
"""

from __future__ import annotations

import time

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
