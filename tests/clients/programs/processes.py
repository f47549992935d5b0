"""Several processes that use the device, by Python's multiprocessing: --start fork or spawn.

The first process never touches the driver, as a program that forks must not; each worker opens it by
itself, allocates and copies. A worker forked before the driver was started is a CUDA program like any.
"""

import argparse
import multiprocessing


def work(number, results):
    from cuda_python_calls import ask, cu, fits

    ask(cu.cuInit(0))
    ask(cu.cuCtxSetCurrent(ask(cu.cuDevicePrimaryCtxRetain(ask(cu.cuDeviceGet(0))))))
    pointers = [ask(cu.cuMemAlloc(1 << (10 + shift))) for shift in range(number, number + 8)]
    same = all(fits(pointer, 1024, number) for pointer in pointers)
    for pointer in pointers:
        ask(cu.cuMemFree(pointer))
    results.put((number, len(pointers), same))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--start", choices=["fork", "spawn"], required=True, help="how workers are started")
    parser.add_argument("--workers", type=int, default=3, help="how many (default 3)")
    chosen = parser.parse_args()
    context = multiprocessing.get_context(chosen.start)
    results = context.Queue()
    workers = [context.Process(target=work, args=(number, results)) for number in range(chosen.workers)]
    for worker in workers:
        worker.start()
    answers = sorted(results.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
    for number, count, same in answers:
        print(f"worker {number}: {count} blocks, back from the device equal: {same}")
    print(f"exit codes: {[worker.exitcode for worker in workers]}")


if __name__ == "__main__":
    main()
