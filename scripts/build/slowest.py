#!/usr/bin/env python3
"""Lists the tests that took longest, from results files of ctest and pytest.

  slowest.py [--count N] RESULTS...        JUnit's XML; files that are not there are left out [20]
"""
import argparse
import pathlib
import xml.etree.ElementTree


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    tests = []
    for results in filter(pathlib.Path.exists, args.results):
        for test in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
            tests.append((float(test.get("time") or 0), test.get("name"), results))
    tests.sort(key=lambda test: -test[0])
    print(f"The slowest of {len(tests)} tests, which took {sum(test[0] for test in tests):.0f} s:")
    for seconds, name, results in tests[:args.count]:
        print(f"  {seconds:7.1f} s  {name}  ({results})")


if __name__ == "__main__":
    main()
