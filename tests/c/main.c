// Runs one of the tests in C, which is named.
//
// usage: c_tests abi|calls|storage|transfer|world [argument of that test...]
#include <stdio.h>
#include <string.h>

#include "c/tests.h"

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  if (strcmp(name, "abi") == 0) return abi_test();
  if (strcmp(name, "calls") == 0) return calls_test();
  if (strcmp(name, "storage") == 0) return storage_test();
  if (strcmp(name, "transfer") == 0) return transfer_test();
  if (strcmp(name, "world") == 0) return world_test(argc - 1, argv + 1);
  fprintf(stderr, "there is no test '%s'\n", name);
  return 2;
}
