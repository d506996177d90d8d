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

// A function that calls libcurl's of the same name, or returns `absent`.
#define SLUICE_LAZY(result, name, parameters, arguments, absent) \
  result name parameters {                                       \
    static const auto call = Find<decltype(&::name)>(#name);     \
    return call == nullptr ? absent : call arguments;            \
  }
// One that takes an option behind its two arguments.
#define SLUICE_LAZY_OPTION(result, name, handle, option, absent) \
  result name(handle of, option which, ...) {                    \
    static const auto call = Find<decltype(&::name)>(#name);     \
    va_list list;                                                \
    va_start(list, which);                                       \
    void* const value = va_arg(list, void*);                     \
    va_end(list);                                                \
    return call == nullptr ? absent : call(of, which, value);    \
  }

extern "C" {

SLUICE_LAZY(CURLcode, curl_global_init, (long flags), (flags), CURLE_FAILED_INIT)
SLUICE_LAZY(CURL*, curl_easy_init, (void), (), nullptr)
SLUICE_LAZY(void, curl_easy_cleanup, (CURL * easy), (easy), void())
SLUICE_LAZY(CURLcode, curl_easy_perform, (CURL * easy), (easy), CURLE_FAILED_INIT)
SLUICE_LAZY_OPTION(CURLcode, curl_easy_setopt, CURL*, CURLoption, CURLE_FAILED_INIT)
SLUICE_LAZY_OPTION(CURLcode, curl_easy_getinfo, CURL*, CURLINFO, CURLE_FAILED_INIT)
SLUICE_LAZY(const char*, curl_easy_strerror, (CURLcode code), (code), Loaded().missing.c_str())

SLUICE_LAZY(CURLM*, curl_multi_init, (void), (), nullptr)
SLUICE_LAZY(CURLMcode, curl_multi_cleanup, (CURLM * multi), (multi), CURLM_INTERNAL_ERROR)
SLUICE_LAZY(CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL* easy), (multi, easy),
            CURLM_INTERNAL_ERROR)
SLUICE_LAZY(CURLMcode, curl_multi_remove_handle, (CURLM * multi, CURL* easy), (multi, easy),
            CURLM_INTERNAL_ERROR)
SLUICE_LAZY(CURLMsg*, curl_multi_info_read, (CURLM * multi, int* left), (multi, left), nullptr)
SLUICE_LAZY_OPTION(CURLMcode, curl_multi_setopt, CURLM*, CURLMoption, CURLM_INTERNAL_ERROR)
SLUICE_LAZY(CURLMcode, curl_multi_socket_action,
            (CURLM * multi, curl_socket_t socket, int events, int* running),
            (multi, socket, events, running), CURLM_INTERNAL_ERROR)
SLUICE_LAZY(const char*, curl_multi_strerror, (CURLMcode code), (code), Loaded().missing.c_str())

SLUICE_LAZY(curl_slist*, curl_slist_append, (curl_slist * list, const char* text), (list, text),
            nullptr)
SLUICE_LAZY(void, curl_slist_free_all, (curl_slist * list), (list), void())

}  // extern "C"
