// Whom a source trusts: servers whose certificate is verified, and nobody else.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/http/http_fetch.h"
#include "storage/http/http_source.h"
#include "storage/nginx_server.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

class HttpTls : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<NginxServer>> server = NginxServer::Make(true);
    if (absl::IsUnavailable(server.status())) GTEST_SKIP() << server.status();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Write("a.bin", "0123456789");
  }
  absl::Status Read(const std::string& base, const std::string& ca_file) {
    HttpOptions options;
    options.ca_file = ca_file;
    const std::unique_ptr<Source> source = *MakeHttpSource(base, {"a.bin"}, options);
    SourceRun run(source.get());
    const uint64_t cookie = run.Read(0, 2, 3);
    if (!run.UntilAllEnded()) return absl::UnknownError("no event");
    if (run.Outcome(cookie).ok()) run.ExpectBytes(cookie, "234");
    return run.Outcome(cookie);
  }

  std::unique_ptr<NginxServer> server_;
};

TEST_F(HttpTls, TrustsTheAuthorityThatWasGiven) {
  const absl::Status status = Read(server_->TlsUrl("plain/"), server_->ca_file());
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(HttpTls, RefusesWhatIsNotVerified) {
  const std::string base = server_->TlsUrl("plain/");
  for (const std::string& ca_file :
       {server_->other_ca_file(), std::string(), std::string("/nowhere.pem")}) {
    const absl::Status status = Read(base, ca_file);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    HttpOptions options;
    options.ca_file = ca_file;
    const absl::StatusOr<std::string> fetched = FetchHttpObject(base + "a.bin", 100, options);
    EXPECT_TRUE(absl::IsFailedPrecondition(fetched.status())) << fetched.status();
  }
}

TEST_F(HttpTls, RefusesACertificateOfAnotherHost) {
  const std::string base = absl::StrCat("https://localhost:", server_->tls_port(), "/plain/");
  const absl::Status status = Read(base, server_->ca_file());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

}  // namespace
}  // namespace sluice
