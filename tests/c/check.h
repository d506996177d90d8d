// Checks for tests in C: a test that finds something wrong says where, and ends at once.
#ifndef SLUICE_TESTS_C_CHECK_H_
#define SLUICE_TESTS_C_CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/sluice.h"

#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, \
              sluice_last_error());                                                    \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)

#define CHECK_OK(call)                                                  \
  do {                                                                  \
    const sluice_status check_status = (call);                          \
    if (check_status != SLUICE_OK) {                                    \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, \
              sluice_status_name(check_status), sluice_last_error());   \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

// The call fails so, and says this in its text.
#define CHECK_FAILS(call, code, text)                                            \
  do {                                                                           \
    const sluice_status check_status = (call);                                   \
    if (check_status != (code) || strstr(sluice_last_error(), (text)) == NULL) { \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,          \
              sluice_status_name(check_status), sluice_last_error());            \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

static inline double metric(const sluice_metric* metrics, int64_t count, const char* name) {
  int64_t i;
  for (i = 0; i < count; ++i) {
    if (strcmp(metrics[i].name, name) == 0) return metrics[i].value;
  }
  CHECK(!"a metric that is missing");
  return 0;
}

#endif  // SLUICE_TESTS_C_CHECK_H_
