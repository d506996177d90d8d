"""What streaming is meant to reach."""
BOUND = 0.90           # of min(B0, M / (L + s/B0))
OVERLAP = 0.95         # of the time that the consumer's steps alone would take
WAVES = 5.0            # times as fast as one of 8 slabs at a time, at the longest latency
WARM = 0.95            # of the run without latency, with a consumer slower than the budget allows
HAND_OVER = 1.0        # times as fast as a queue with a lock
MAPPED_CPU = 3.0       # times less processor time per GiB than through the page cache
ONE_AHEAD = 0.95       # of the most that overlap of making and training allows
AFTER_UPDATE = 0.99    # of a plain loop
