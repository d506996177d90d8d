// Objects behind HTTP and HTTPS, from a server of the test.
#include "storage/http/http_source.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "storage/http/http_fetch.h"
#include "storage/nginx_server.h"
#include "storage/source_contract.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

constexpr int64_t kKiB = 1024;

// One server for all tests of the contract, each with a folder of its own.
class SharedServer : public testing::Environment {
 public:
  const absl::StatusOr<std::unique_ptr<NginxServer>>& Get() {
    if (!server_) server_.emplace(NginxServer::Make(true));
    return *server_;
  }
  void TearDown() override { server_.reset(); }

 private:
  std::optional<absl::StatusOr<std::unique_ptr<NginxServer>>> server_;
};

auto* const kSharedServer =
    static_cast<SharedServer*>(testing::AddGlobalTestEnvironment(new SharedServer));

absl::StatusOr<ContractSource> MakeContractSource(const std::vector<ContractObject>& objects,
                                                  int in_flight_max, bool tls,
                                                  const std::string& path) {
  const absl::StatusOr<std::unique_ptr<NginxServer>>& server = kSharedServer->Get();
  static int folders = 0;
  if (!server.ok()) return server.status();
  const NginxServer& nginx = **server;
  const std::string folder = absl::StrCat("contract-", folders++);
  std::vector<std::string> names;
  for (const ContractObject& object : objects) {
    names.push_back(object.name);
    if (object.content) nginx.Write(absl::StrCat(folder, "/", object.name), *object.content);
  }
  HttpOptions options;
  options.connections_per_host = options.connections_max = in_flight_max;
  if (tls) options.ca_file = nginx.ca_file();
  const std::string base = absl::StrCat(path, folder);
  auto source = MakeHttpSource(tls ? nginx.TlsUrl(base) : nginx.Url(base), names, options);
  if (!source.ok()) return source.status();
  return ContractSource{nullptr, *std::move(source)};
}

ContractStorage Over(const std::string& name, bool tls, const std::string& path) {
  return {name, [=](const std::vector<ContractObject>& objects, int in_flight_max) {
            return MakeContractSource(objects, in_flight_max, tls, path);
          }};
}

INSTANTIATE_TEST_SUITE_P(Http, SourceContract,
                         testing::Values(Over("Plain", false, "plain/"),
                                         Over("Tls", true, "plain/"),
                                         Over("Slow", false, "delay/2/")),
                         ContractStorageName);

class HttpSource : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<NginxServer>> server = NginxServer::Make();
    if (absl::IsUnavailable(server.status())) GTEST_SKIP() << server.status();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    content_ = SourceContent(5, 256 * kKiB);
    server_->Write("a.bin", content_);
  }
  void Make(const std::string& path, const HttpOptions& options) {
    source_ = *MakeHttpSource(server_->Url(path), {"a.bin"}, options);
    run_ = std::make_unique<SourceRun>(source_.get());
  }
  std::vector<ReadOp> Ops(int count, int64_t bytes) {
    std::vector<ReadOp> ops;
    for (int i = 0; i < count; ++i) ops.push_back(run_->Op(0, i * 100, bytes));
    return ops;
  }
  void ExpectAll(const std::vector<ReadOp>& ops) { run_->ExpectAll(ops, content_); }

  std::unique_ptr<NginxServer> server_;
  std::string content_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<SourceRun> run_;
};

TEST_F(HttpSource, UsesConnectionsAgain) {
  Make("plain/", {.connections_per_host = 4});
  const std::vector<ReadOp> ops = Ops(400, 5000);
  if (!run_->Finish(ops)) return;
  ExpectAll(ops);
  EXPECT_EQ(source_->counters().requests, 400);
  EXPECT_LE(source_->counters().connections, 4);
  source_.reset();
  std::set<int64_t> connections;
  int64_t bytes = 0;
  const std::vector<NginxServer::Request> log = server_->Stop();
  for (const NginxServer::Request& request : log) {
    connections.insert(request.connection);
    bytes += request.body_bytes;
    EXPECT_EQ(request.status, 206);
  }
  EXPECT_EQ(log.size(), 400u);
  EXPECT_EQ(bytes, 400 * 5000);
  EXPECT_LE(connections.size(), 4u);
}

TEST_F(HttpSource, KeepsItsConnectionsAfterErrors) {
  server_->Write("other.bin", "x");
  source_ =
      *MakeHttpSource(server_->Url("plain"), {"missing.bin", "a.bin"}, {.connections_per_host = 1});
  run_ = std::make_unique<SourceRun>(source_.get());
  for (int i = 0; i < 20; ++i) {
    run_->Read(i % 2, 0, 10);
    run_->Read(1, 300 * kKiB, 10);
  }
  ASSERT_TRUE(run_->UntilAllEnded());
  EXPECT_EQ(source_->counters().connections, 1);
}

TEST_F(HttpSource, AsksForNoMoreAtOnceThanAllowed) {
  for (const HttpOptions& options :
       {HttpOptions{.connections_per_host = 3, .connections_max = 64},
        HttpOptions{.connections_per_host = 64, .connections_max = 3}}) {
    Make("delay/5/", options);
    const std::vector<ReadOp> ops = Ops(30, 1000);
    if (!run_->Finish(ops)) return;
    ExpectAll(ops);
  }
  const auto most = FetchHttpObject(server_->Url("most"), 100, {}).value();
  EXPECT_EQ(most, "3") << "all three at work, and never more";
}

// What waits for a connection is not late yet: all of them take longer than one may.
TEST_F(HttpSource, CountsNoTimeThatAReadWaitsForItsTurn) {
  // A machine that stands still for so long makes one late, but not each time.
  constexpr int kTries = 20;
  for (int tries = 0; tries < kTries; ++tries) {
    Make("delay/20/",
         {.connections_per_host = 1, .timeout_ns = 800'000'000, .stall_timeout_ns = 800'000'000});
    const std::vector<ReadOp> ops = Ops(60, 1000);
    if (!run_->Finish(ops)) return;
    const bool is_late = std::any_of(ops.begin(), ops.end(), [this](const ReadOp& op) {
      return absl::IsUnavailable(run_->Outcome(op.cookie));
    });
    if (!is_late) return ExpectAll(ops);
  }
  ADD_FAILURE() << "reads were late each time";
}

TEST_F(HttpSource, BeginsReadsInTheOrderInWhichTheyCame) {
  Make("plain/", {.connections_per_host = 1});
  const std::vector<ReadOp> ops = Ops(20, 1000);
  ASSERT_TRUE(run_->Start(ops).ok());
  for (const ReadOp& op : ops) {
    while (!run_->Ended(op.cookie)) {
      ASSERT_TRUE(run_->UntilEnded(run_->outstanding() - 1));
      ASSERT_TRUE(run_->Ended(op.cookie) || run_->Poll(0) == 0);
    }
  }
  ExpectAll(ops);
}

TEST_F(HttpSource, EndsCancelledReadsAtOnce) {
  Make("fault/silent/", {.connections_per_host = 2});
  const std::vector<ReadOp> ops = Ops(6, 1000);
  ASSERT_TRUE(run_->Start(ops).ok());
  run_->Poll(1);
  for (const ReadOp& op : ops) source_->Cancel(op.cookie);
  EXPECT_EQ(run_->Poll(10), 6);
  for (const ReadOp& op : ops) EXPECT_TRUE(absl::IsCancelled(run_->Outcome(op.cookie)));
}

TEST_F(HttpSource, AnObjectThatIsReplacedIsNotMixed) {
  Make("plain/", {.connections_per_host = 2});
  std::vector<ReadOp> ops = Ops(4, 1000);
  if (!run_->Finish(ops)) return;
  ExpectAll(ops);
  // As long as before: nothing but its version tells.
  server_->Write("a.bin", SourceContent(6, 256 * kKiB));
  std::filesystem::last_write_time(
      server_->FileOf("a.bin"),
      std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  for (int i = 0; i < 2; ++i) {
    const uint64_t cookie = run_->Read(0, 4000, 1000);
    ASSERT_TRUE(run_->UntilAllEnded());
    EXPECT_THAT(run_->Outcome(cookie), Fails(absl::StatusCode::kDataLoss, "has changed"));
  }
  run_->ExpectGuards();
}

TEST_F(HttpSource, ReadersThatShareVersionsReadOneOfAnObject) {
  const auto versions = std::make_shared<HttpVersions>(1);
  Make("plain/", {.versions = versions});
  run_->Read(0, 0, 1000);
  ASSERT_TRUE(run_->UntilAllEnded());
  ASSERT_TRUE((*versions)[0].is_known());
  EXPECT_FALSE((*versions)[0].etag.empty());
  for (const bool same : {true, false}) {
    if (!same) {
      std::filesystem::last_write_time(
          server_->FileOf("a.bin"),
          std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
    }
    Make("plain/", {.versions = std::make_shared<HttpVersions>(*versions)});
    const uint64_t cookie = run_->Read(0, 4000, 1000);
    ASSERT_TRUE(run_->UntilAllEnded());
    const absl::Status status = run_->Outcome(cookie);
    EXPECT_EQ(status.code(), same ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss) << status;
  }
}

TEST_F(HttpSource, FetchesWholeObjects) {
  EXPECT_TRUE(*FetchHttpObject(server_->Url("plain/a.bin"), 256 * kKiB, {}) == content_);
  EXPECT_TRUE(absl::IsResourceExhausted(
      FetchHttpObject(server_->Url("plain/a.bin"), 256 * kKiB - 1, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(FetchHttpObject(server_->Url("plain/b.bin"), 100, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FetchHttpObject("file:///etc/passwd", 100, {}).status()));
  const HttpOptions hasty = {.timeout_ns = 50'000'000};
  EXPECT_TRUE(absl::IsUnavailable(
      FetchHttpObject(server_->Url("fault/silent/a.bin"), 100, hasty).status()));
}

TEST(HttpSourceOptions, MustMakeSense) {
  const auto code = [](const std::string& base, const std::vector<std::string>& names,
                       const HttpOptions& options) {
    return MakeHttpSource(base, names, options).status().code();
  };
  constexpr absl::StatusCode kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code("http://h/", {"a"}, {}), absl::StatusCode::kOk);
  EXPECT_EQ(code("h/", {}, {}), kBad);
  EXPECT_EQ(code("http://h/", {"a", "../b"}, {}), kBad);
  EXPECT_EQ(code("http://h/", {"a"}, {.connections_per_host = 0}), kBad);
  EXPECT_EQ(code("http://h/", {"a"}, {.connections_max = 0}), kBad);
  EXPECT_EQ(code("http://h/", {"a"}, {.timeout_ns = 0}), kBad);
  EXPECT_EQ(code("http://h/", {"a"}, {.stall_timeout_ns = -1}), kBad);
  const HttpOptions sizes = {.object_bytes = {1, 2}};
  EXPECT_EQ(code("http://h/", {"a"}, sizes), kBad);
  const HttpOptions versions = {.versions = std::make_shared<HttpVersions>(2)};
  EXPECT_EQ(code("http://h/", {"a"}, versions), kBad);
}

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
    const HttpOptions options = {.ca_file = ca_file};
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
  EXPECT_EQ(Read(server_->TlsUrl("plain/"), server_->ca_file()), absl::OkStatus());
}

TEST_F(HttpTls, RefusesWhatIsNotVerified) {
  const std::string base = server_->TlsUrl("plain/");
  for (const std::string& ca_file :
       {server_->other_ca_file(), std::string(), std::string("/nowhere.pem")}) {
    const absl::Status status = Read(base, ca_file);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    const HttpOptions options = {.ca_file = ca_file};
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
