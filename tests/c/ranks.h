// Ranks that are threads of a test in C, each with its session.
#ifndef SLUICE_TESTS_C_RANKS_H_
#define SLUICE_TESTS_C_RANKS_H_

#include <pthread.h>

#include "c/check.h"
#include "sluice/sluice.h"

#define RANKS_MAX 4

// 0: sessions are destroyed with what they have.
static int closes_sessions = 1;

struct rank_thread {
  sluice_local* local;
  int32_t rank;
  const sluice_session_options* options;
  void (*body)(sluice_session* session, int32_t rank);
};

static void* run_rank(void* argument) {
  struct rank_thread* self = (struct rank_thread*)argument;
  sluice_session* session = NULL;
  CHECK_OK(sluice_local_session(self->local, self->rank, self->options, &session));
  CHECK(sluice_session_rank(session) == self->rank);
  self->body(session, self->rank);
  if (closes_sessions) CHECK_OK(sluice_session_close(session));
  CHECK_OK(sluice_session_destroy(session));
  return NULL;
}

// Calls `body` on a thread for each rank, with its session.
static void on_ranks(int32_t count, const sluice_session_options* options,
                     void (*body)(sluice_session* session, int32_t rank)) {
  pthread_t threads[RANKS_MAX];
  struct rank_thread arguments[RANKS_MAX];
  sluice_local* local = NULL;
  int32_t rank;
  CHECK_OK(sluice_local_create(count, &local));
  for (rank = 0; rank < count; ++rank) {
    arguments[rank].local = local;
    arguments[rank].rank = rank;
    arguments[rank].options = options;
    arguments[rank].body = body;
    CHECK(pthread_create(&threads[rank], NULL, run_rank, &arguments[rank]) == 0);
  }
  for (rank = 0; rank < count; ++rank) CHECK(pthread_join(threads[rank], NULL) == 0);
  sluice_local_destroy(local);
}

#endif  // SLUICE_TESTS_C_RANKS_H_
