"""What streaming is meant to reach."""
BOUND = 0.90           # of min(B0, M / (L + s/B0))
AMPLE = 0.95           # of the throughput without latency, with a window of twice the product
HEDGED = 0.90          # of the throughput without slow reads
EXTRA_REQUESTS = 0.03  # at most, for hedges
# At most, of a consumer whose step is 1.2 times the production time, by progress_thread.
STALL = {1: 0.01, 0: 0.05}
OVERLAP = 0.95         # of the time that the consumer's steps alone would take
FIO_CPU = 1.25         # times fio's processor time, at most
CURL = 0.95            # of curl's throughput
REUSE = 0.99           # of requests over connections that were there
READ_ONCE = 1.0        # of unique bytes, and of objects opened
MEMORY = 1.0           # at most, of budget, device buffers and what may come on top
CROWD = 0.9            # of what a process has alone
FIRST_ITEM = 1.2       # times a round trip and the item's own transfer, at most
WAVES = 5.0            # times as fast as one of 8 slabs at a time, at the longest latency
WARM = 0.95            # of the run without latency, with a consumer slower than the budget allows
HAND_OVER = 1.0        # times as fast as a queue with a lock
MAPPED_CPU = 3.0       # times less processor time per GiB than through the page cache
ONE_AHEAD = 0.95       # of the most that overlap of making and training allows
AFTER_UPDATE = 0.99    # of a plain loop
