// Loads libsluice.so at run time, twice and again, as other languages do; and beside a copy of it.
//
//   load_test LIBRARY COPY
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      const char* const error = dlerror();                                                    \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, error ? error : ""); \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

typedef int32_t (*number_call)(void);
typedef int32_t (*status_call)(void*);
typedef const char* (*text_call)(void);

// POSIX has it that a pointer to data may be one to a function, and ISO C has not.
static void find(void* library, const char* name, void* call) {
  void* const found = dlsym(library, name);
  CHECK(found != NULL);
  memcpy(call, &found, sizeof found);
}

// Each copy has texts of its own.
static void fail_with(void* library, const char* call_name, const char* text) {
  status_call call;
  text_call last_error;
  find(library, call_name, &call);
  find(library, "sluice_last_error", &last_error);
  CHECK(call(NULL) == -3);
  CHECK(strcmp(last_error(), text) == 0);
}

static void copy_file(const char* from, const char* to) {
  FILE* const source = fopen(from, "rb");
  FILE* const target = fopen(to, "wb");
  char bytes[4096];
  size_t count;
  CHECK(source != NULL && target != NULL);
  while ((count = fread(bytes, 1, sizeof bytes, source)) > 0) {
    CHECK(fwrite(bytes, 1, count, target) == count);
  }
  CHECK(fclose(source) == 0);
  CHECK(fclose(target) == 0);
}

int main(int argc, char** argv) {
  void* first;
  void* second;
  void* copy;
  number_call version;
  text_call last_error;
  CHECK(argc == 3);
  first = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(first != NULL);
  second = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(second == first);
  find(first, "sluice_api_version", &version);
  CHECK(version() == 1);
  fail_with(first, "sluice_poll", "sluice_poll: session is NULL");
  CHECK(dlclose(first) == 0);
  CHECK(version() == 1);
  CHECK(dlclose(second) == 0);
  // It stays where it is: threads of its sessions may still run.
  CHECK(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == first);

  copy_file(argv[1], argv[2]);
  copy = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  CHECK(copy != NULL && copy != first);
  find(copy, "sluice_last_error", &last_error);
  CHECK(strcmp(last_error(), "") == 0);
  fail_with(copy, "sluice_session_close", "sluice_session_close: session is NULL");
  find(first, "sluice_last_error", &last_error);
  CHECK(strcmp(last_error(), "sluice_poll: session is NULL") == 0);
  return remove(argv[2]);
}
