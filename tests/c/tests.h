// The tests in C, each of which ends the process where it finds something wrong.
#ifndef SLUICE_TESTS_C_TESTS_H_
#define SLUICE_TESTS_C_TESTS_H_

int abi_test(void);
int calls_test(void);
int storage_test(void);
int transfer_test(void);
// Runs itself as other members, whose parts are named by arguments.
int world_test(int argc, char** argv);

#endif  // SLUICE_TESTS_C_TESTS_H_
