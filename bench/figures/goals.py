"""What streaming is meant to reach."""
BOUND = 0.90           # of min(B0, M / (L + s/B0))
AMPLE = 0.95           # of the throughput without latency, with a window of twice the product
HEDGED = 0.90          # of the throughput without slow reads
EXTRA_REQUESTS = 0.03  # at most, for hedges
STALL = 0.01           # at most, of a consumer whose step is 1.2 times the production time
OVERLAP = 0.95         # of the time that the consumer's steps alone would take
FIO_CPU = 1.25         # times fio's processor time, at most
CURL = 0.95            # of curl's throughput
REUSE = 0.99           # of requests over connections that were there
READ_ONCE = 1.0        # of unique bytes, and of objects opened
MEMORY = 1.0           # at most, of budget, device buffers and what may come on top
CROWD = 0.9            # of what a process has alone
FIRST_ITEM = 1.2       # times a round trip and the item's own transfer, at most
