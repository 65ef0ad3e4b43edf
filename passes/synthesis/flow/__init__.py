"""All-to-all by flow: the rate of LP (3) of the direct-connect paper (A.5), and schedules that reach it."""
