// libcurl's functions, as far as Sluice calls them: found when the first of them is called.
//
// The module then has no link to libcurl and to the thirty libraries that a distribution's libcurl
// brings. Without libcurl on the machine, sources of HTTP fail with what the loader says, and all
// else works.
#include <curl/curl.h>
#include <dlfcn.h>

#include <cstdarg>
#include <string>

// Macros of the header that check types, or count arguments.
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

namespace {

// The oldest that Sluice is built with: 7.85.
constexpr unsigned kOldest = 0x075500;

// Null, and why, where there is no libcurl that will do.
struct Library {
  void* handle = nullptr;
  std::string missing = {};
};

Library Load() {
  Library library;
  for (const char* const name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"}) {
    library.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library.handle != nullptr) break;
  }
  if (library.handle == nullptr) {
    library.missing = "there is no libcurl (libcurl.so.4) on this machine";
    return library;
  }
  const auto version =
      reinterpret_cast<decltype(&::curl_version_info)>(dlsym(library.handle, "curl_version_info"));
  if (version == nullptr || version(CURLVERSION_NOW)->version_num < kOldest) {
    library.missing = std::string("libcurl ") +
                      (version == nullptr ? "?" : version(CURLVERSION_NOW)->version) +
                      " is too old: Sluice takes 7.85 at least";
    library.handle = nullptr;  // stays loaded: who knows whose it is
  }
  return library;
}

const Library& Loaded() {
  static const Library* const library = new Library(Load());
  return *library;
}

// A function of libcurl, or null.
template <typename Function>
Function Find(const char* name) {
  void* const handle = Loaded().handle;
  return handle == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle, name));
}

// Options are a long, a pointer or a curl_off_t: all of one size here, and passed alike.
static_assert(sizeof(long) == sizeof(void*) && sizeof(curl_off_t) == sizeof(void*));

}  // namespace

#define SLUICE_FIND(name) static const auto call = Find<decltype(&::name)>(#name)

extern "C" {

CURLcode curl_global_init(long flags) {
  SLUICE_FIND(curl_global_init);
  return call == nullptr ? CURLE_FAILED_INIT : call(flags);
}

CURL* curl_easy_init(void) {
  SLUICE_FIND(curl_easy_init);
  return call == nullptr ? nullptr : call();
}

void curl_easy_cleanup(CURL* easy) {
  SLUICE_FIND(curl_easy_cleanup);
  if (call != nullptr) call(easy);
}

CURLcode curl_easy_perform(CURL* easy) {
  SLUICE_FIND(curl_easy_perform);
  return call == nullptr ? CURLE_FAILED_INIT : call(easy);
}

CURLcode curl_easy_setopt(CURL* easy, CURLoption option, ...) {
  SLUICE_FIND(curl_easy_setopt);
  va_list list;
  va_start(list, option);
  void* const value = va_arg(list, void*);
  va_end(list);
  return call == nullptr ? CURLE_FAILED_INIT : call(easy, option, value);
}

CURLcode curl_easy_getinfo(CURL* easy, CURLINFO info, ...) {
  SLUICE_FIND(curl_easy_getinfo);
  va_list list;
  va_start(list, info);
  void* const into = va_arg(list, void*);
  va_end(list);
  return call == nullptr ? CURLE_FAILED_INIT : call(easy, info, into);
}

const char* curl_easy_strerror(CURLcode code) {
  SLUICE_FIND(curl_easy_strerror);
  return call == nullptr ? Loaded().missing.c_str() : call(code);
}

CURLM* curl_multi_init(void) {
  SLUICE_FIND(curl_multi_init);
  return call == nullptr ? nullptr : call();
}

CURLMcode curl_multi_cleanup(CURLM* multi) {
  SLUICE_FIND(curl_multi_cleanup);
  return call == nullptr ? CURLM_INTERNAL_ERROR : call(multi);
}

CURLMcode curl_multi_add_handle(CURLM* multi, CURL* easy) {
  SLUICE_FIND(curl_multi_add_handle);
  return call == nullptr ? CURLM_INTERNAL_ERROR : call(multi, easy);
}

CURLMcode curl_multi_remove_handle(CURLM* multi, CURL* easy) {
  SLUICE_FIND(curl_multi_remove_handle);
  return call == nullptr ? CURLM_INTERNAL_ERROR : call(multi, easy);
}

CURLMsg* curl_multi_info_read(CURLM* multi, int* left) {
  SLUICE_FIND(curl_multi_info_read);
  return call == nullptr ? nullptr : call(multi, left);
}

CURLMcode curl_multi_setopt(CURLM* multi, CURLMoption option, ...) {
  SLUICE_FIND(curl_multi_setopt);
  va_list list;
  va_start(list, option);
  void* const value = va_arg(list, void*);
  va_end(list);
  return call == nullptr ? CURLM_INTERNAL_ERROR : call(multi, option, value);
}

CURLMcode curl_multi_socket_action(CURLM* multi, curl_socket_t socket, int events, int* running) {
  SLUICE_FIND(curl_multi_socket_action);
  return call == nullptr ? CURLM_INTERNAL_ERROR : call(multi, socket, events, running);
}

const char* curl_multi_strerror(CURLMcode code) {
  SLUICE_FIND(curl_multi_strerror);
  return call == nullptr ? Loaded().missing.c_str() : call(code);
}

curl_slist* curl_slist_append(curl_slist* list, const char* text) {
  SLUICE_FIND(curl_slist_append);
  return call == nullptr ? nullptr : call(list, text);
}

void curl_slist_free_all(curl_slist* list) {
  SLUICE_FIND(curl_slist_free_all);
  if (call != nullptr) call(list);
}

}  // extern "C"
