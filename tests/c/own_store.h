// A store as a program in C has it: a table behind a lock, and the five calls over it.
#ifndef SLUICE_TESTS_C_OWN_STORE_H_
#define SLUICE_TESTS_C_OWN_STORE_H_

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "c/check.h"
#include "sluice/sluice.h"

#define ENTRIES_MAX 256

struct entry {
  size_t key_bytes;
  size_t bytes;
  char key[512];
  char* value;
};

struct table {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct entry entries[ENTRIES_MAX];
  int count;
  int destroyed;
  int calls;
};

static void table_init(struct table* table) {
  pthread_condattr_t monotonic;
  memset(table, 0, sizeof *table);
  pthread_mutex_init(&table->mutex, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&table->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

static void table_end(struct table* table) {
  int i;
  for (i = 0; i < table->count; ++i) free(table->entries[i].value);
  pthread_cond_destroy(&table->changed);
  pthread_mutex_destroy(&table->mutex);
}

// With the lock held, from here on. NULL: there is no value.
static struct entry* table_find(struct table* table, const void* key, size_t key_bytes) {
  int i;
  ++table->calls;
  for (i = 0; i < table->count; ++i) {
    struct entry* const entry = &table->entries[i];
    if (entry->key_bytes == key_bytes && memcmp(entry->key, key, key_bytes) == 0) return entry;
  }
  return NULL;
}

static sluice_status table_put(struct table* table, const void* key, size_t key_bytes,
                               const void* value, size_t bytes) {
  struct entry* entry = table_find(table, key, key_bytes);
  if (bytes == 0) {
    if (entry == NULL) return SLUICE_OK;
    free(entry->value);
    *entry = table->entries[--table->count];
    return SLUICE_OK;
  }
  if (entry == NULL) {
    if (table->count == ENTRIES_MAX) {
      sluice_set_error("the table is full");
      return SLUICE_RESOURCE_EXHAUSTED;
    }
    entry = &table->entries[table->count++];
    memset(entry, 0, sizeof *entry);
    memcpy(entry->key, key, key_bytes);
    entry->key_bytes = key_bytes;
  }
  entry->value = (char*)realloc(entry->value, bytes);
  CHECK(entry->value != NULL);
  memcpy(entry->value, value, bytes);
  entry->bytes = bytes;
  pthread_cond_broadcast(&table->changed);
  return SLUICE_OK;
}

static sluice_status table_reply(const struct entry* entry, sluice_reply* reply) {
  return entry == NULL ? sluice_reply_value(reply, NULL, 0)
                       : sluice_reply_value(reply, entry->value, entry->bytes);
}

static sluice_status table_set(void* self, const void* key, size_t key_bytes, const void* value,
                               size_t bytes) {
  struct table* const table = (struct table*)self;
  sluice_status status;
  pthread_mutex_lock(&table->mutex);
  status = table_put(table, key, key_bytes, value, bytes);
  pthread_mutex_unlock(&table->mutex);
  return status;
}

static struct timespec after(double timeout_s) {
  struct timespec time;
  const double whole = timeout_s > 1e6 ? 1e6 : timeout_s;
  clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += (time_t)whole;
  time.tv_nsec += (long)((whole - (double)(time_t)whole) * 1e9);
  if (time.tv_nsec >= 1000000000L) {
    time.tv_nsec -= 1000000000L;
    ++time.tv_sec;
  }
  return time;
}

static sluice_status table_get(void* self, const void* key, size_t key_bytes, double timeout_s,
                               sluice_reply* value) {
  struct table* const table = (struct table*)self;
  const struct timespec end = after(timeout_s < 0 ? 1e6 : timeout_s);
  sluice_status status = SLUICE_OK;
  struct entry* entry;
  pthread_mutex_lock(&table->mutex);
  while ((entry = table_find(table, key, key_bytes)) == NULL && status == SLUICE_OK) {
    if (pthread_cond_timedwait(&table->changed, &table->mutex, &end) == ETIMEDOUT) {
      status = SLUICE_DEADLINE_EXCEEDED;
    }
  }
  if (entry != NULL) status = table_reply(entry, value);
  pthread_mutex_unlock(&table->mutex);
  return status;
}

static sluice_status table_add(void* self, const void* key, size_t key_bytes, int64_t delta,
                               int64_t* sum) {
  struct table* const table = (struct table*)self;
  sluice_status status;
  const struct entry* entry;
  char text[32] = "";
  pthread_mutex_lock(&table->mutex);
  entry = table_find(table, key, key_bytes);
  if (entry != NULL && entry->bytes < sizeof text) memcpy(text, entry->value, entry->bytes);
  *sum = strtoll(text, NULL, 10) + delta;
  snprintf(text, sizeof text, "%lld", (long long)*sum);
  status = table_put(table, key, key_bytes, text, strlen(text));
  pthread_mutex_unlock(&table->mutex);
  return status;
}

static sluice_status table_compare_set(void* self, const void* key, size_t key_bytes,
                                       const void* expected, size_t expected_bytes,
                                       const void* desired, size_t desired_bytes,
                                       sluice_reply* value) {
  struct table* const table = (struct table*)self;
  sluice_status status = SLUICE_OK;
  const struct entry* entry;
  int is_equal;
  pthread_mutex_lock(&table->mutex);
  entry = table_find(table, key, key_bytes);
  is_equal = entry == NULL ? expected_bytes == 0
                           : entry->bytes == expected_bytes &&
                                 memcmp(entry->value, expected, expected_bytes) == 0;
  if (is_equal) status = table_put(table, key, key_bytes, desired, desired_bytes);
  if (status == SLUICE_OK) status = table_reply(table_find(table, key, key_bytes), value);
  pthread_mutex_unlock(&table->mutex);
  return status;
}

static sluice_status table_list(void* self, const void* prefix, size_t prefix_bytes,
                                sluice_reply* entries) {
  struct table* const table = (struct table*)self;
  sluice_status status = SLUICE_OK;
  int i;
  pthread_mutex_lock(&table->mutex);
  for (i = 0; i < table->count && status == SLUICE_OK; ++i) {
    const struct entry* const entry = &table->entries[i];
    if (entry->key_bytes < prefix_bytes || memcmp(entry->key, prefix, prefix_bytes) != 0) continue;
    status = sluice_reply_entry(entries, entry->key, entry->key_bytes, entry->value, entry->bytes);
  }
  pthread_mutex_unlock(&table->mutex);
  return status;
}

// Several stores may share a table.
static void table_destroy(void* self) {
  struct table* const table = (struct table*)self;
  pthread_mutex_lock(&table->mutex);
  ++table->destroyed;
  pthread_mutex_unlock(&table->mutex);
}

static sluice_store_calls table_calls(struct table* table) {
  sluice_store_calls calls = SLUICE_STORE_CALLS_INIT;
  calls.self = table;
  calls.set = table_set;
  calls.get = table_get;
  calls.add = table_add;
  calls.compare_set = table_compare_set;
  calls.list = table_list;
  calls.destroy = table_destroy;
  return calls;
}

#endif  // SLUICE_TESTS_C_OWN_STORE_H_
