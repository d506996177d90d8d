"""Independent runs of a program, some at a time."""
import concurrent.futures


def together(jobs):
    """Calls all of them, some at a time: most of a short run is MPI's beginning and end."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()
