#include "ranks.hpp"

#include "builtin.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace collc::oneccl {

using Clock = std::chrono::steady_clock;

std::vector<Case> make_cases(const Algorithm &a, const Options &options)
{
    std::vector<std::string> ops = options.ops, places = options.places;
    if (!a.reduces())
        ops = {""};
    else if (ops.empty())
        ops = {*a.operations.rbegin()}; // the last by name: sum if the file supports it
    if (places.empty()) {
        if (a.inplace)
            places.push_back("in");
        if (a.outofplace)
            places.push_back("out");
    }
    const std::vector<std::string> types = options.types.empty() ? std::vector<std::string>{"float32"} : options.types;
    const std::vector<std::size_t> counts = options.counts.empty() ? std::vector<std::size_t>{1000} : options.counts;
    std::vector<Case> found;
    for (const std::string &type : types)
        for (const std::string &op : ops)
            for (const std::string &place : places)
                for (const std::size_t count : counts) {
                    if (!a.datatypes.count(type))
                        throw std::runtime_error("the file does not serve elements `" + type + "`");
                    if (!op.empty() && !a.operations.count(op))
                        throw std::runtime_error("the file does not serve the operation `" + op + "`");
                    if (place != "in" && place != "out")
                        throw std::runtime_error("a place is `in` or `out`, found `" + place + "`");
                    if (!(place == "in" ? a.inplace : a.outofplace))
                        throw std::runtime_error("the file does not serve calls " + std::string(place == "in" ? "in place" : "out of place"));
                    found.push_back({count, type, op, place == "in"});
                }
    return found;
}

// ---- all ranks

namespace {

class Ranks {
public:
    explicit Ranks(int number) : pids_(static_cast<std::size_t>(number), -1) {}
    ~Ranks() { stop(); }

    void start(char **argv, int rank, const std::string &folder)
    {
        const pid_t parent = getpid(), pid = fork();
        if (pid < 0)
            throw std::runtime_error("no process for rank " + std::to_string(rank));
        if (pid > 0) {
            pids_[static_cast<std::size_t>(rank)] = pid;
            return;
        }
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
#else
        (void)parent;
#endif
        std::vector<char *> words;
        for (char **word = argv; *word; word++)
            words.push_back(*word);
        std::string number = std::to_string(rank), option = "--rank", where = "--folder", path = folder;
        for (std::string *word : {&option, &number, &where, &path})
            words.push_back(word->data());
        words.push_back(nullptr);
        environment(rank);
        execv("/proc/self/exe", words.data());
        execvp(argv[0], words.data());
        _exit(127);
    }

    // Return the status of all: that of the first rank that failed. After a failure, or at the time limit, the others
    // are stopped.
    int wait(int timeout)
    {
        const auto end = Clock::now() + std::chrono::seconds(timeout);
        std::size_t left = pids_.size();
        while (left) {
            int status = 0;
            const pid_t pid = waitpid(-1, &status, WNOHANG);
            if (pid > 0) {
                const auto found = std::find(pids_.begin(), pids_.end(), pid);
                if (found == pids_.end())
                    continue;
                *found = -1;
                left--;
                if (status)
                    return failed(static_cast<int>(found - pids_.begin()), status);
            } else if (Clock::now() > end) {
                std::fprintf(stderr, "collc-oneccl: the run took longer than %d s and was stopped\n", timeout);
                return 1;
            } else {
                usleep(2000);
            }
        }
        return 0;
    }

private:
    int failed(int rank, int status)
    {
        if (WIFSIGNALED(status))
            std::fprintf(stderr, "collc-oneccl: rank %d was killed by signal %d; all others are stopped\n", rank, WTERMSIG(status));
        else
            std::fprintf(stderr, "collc-oneccl: rank %d ended with status %d; all others are stopped\n", rank, WEXITSTATUS(status));
        return 1;
    }

    void stop()
    {
        for (const pid_t pid : pids_)
            if (pid > 0)
                kill(pid, SIGKILL);
        for (const pid_t pid : pids_)
            if (pid > 0)
                waitpid(pid, nullptr, 0);
    }

    // Settings that oneCCL needs without a launcher, unless the user has set them.
    void environment(int rank) const
    {
        const std::pair<const char *, const char *> defaults[] = {
            {"CCL_ATL_TRANSPORT", "ofi"}, {"FI_PROVIDER", "tcp"},  {"FI_TCP_IFACE", "lo"},     {"CCL_KVS_IFACE", "lo"},
            {"CCL_YIELD", "sched_yield"}, {"CCL_LOG_LEVEL", "error"},
#ifdef COLLC_ONECCL_ROOT
            {"CCL_ROOT", COLLC_ONECCL_ROOT}, {"CCL_OFI_LIBRARY_PATH", COLLC_LIBFABRIC},
#endif
        };
        for (const auto &[name, value] : defaults)
            setenv(name, value, 0);
        setenv("CCL_PROCESS_LAUNCHER", "none", 1);
        setenv("CCL_LOCAL_RANK", std::to_string(rank).c_str(), 1);
        setenv("CCL_LOCAL_SIZE", std::to_string(pids_.size()).c_str(), 1);
    }

    std::vector<pid_t> pids_;
};

} // namespace

int start_ranks(char **argv, int size, const Options &options)
{
    const char *base = std::getenv("TMPDIR");
    std::string folder = std::string(base && *base ? base : "/tmp") + "/collc-oneccl-XXXXXX";
    if (!mkdtemp(folder.data()))
        throw std::runtime_error("cannot create a folder for the ranks");
    int status;
    {
        Ranks ranks(size);
        for (int r = 0; r < size; r++)
            ranks.start(argv, r, folder);
        status = ranks.wait(options.timeout);
    }
    for (const char *name : {"/kvs", "/kvs.part"})
        unlink((folder + name).c_str());
    rmdir(folder.c_str());
    return status;
}

// ---- one rank

namespace {

// Rank 0 listens and writes its address; the others read it.
ccl::shared_ptr_class<ccl::kvs> meet(const Options &options)
{
    const std::string path = options.folder + "/kvs", part = path + ".part";
    if (options.rank == 0) {
        auto kvs = ccl::create_main_kvs();
        const auto address = kvs->get_address();
        std::ofstream(part, std::ios::binary).write(address.data(), static_cast<std::streamsize>(address.size()));
        if (std::rename(part.c_str(), path.c_str()))
            throw std::runtime_error("cannot write to " + options.folder);
        return kvs;
    }
    const auto end = Clock::now() + std::chrono::seconds(options.timeout);
    ccl::kvs::address_type address;
    for (;;) {
        std::ifstream stream(path, std::ios::binary);
        if (stream.read(address.data(), static_cast<std::streamsize>(address.size())))
            return ccl::create_kvs(address);
        if (Clock::now() > end)
            throw std::runtime_error("rank 0 was not there in time");
        usleep(2000);
    }
}

// The slowest time, and whether any rank was wrong: all ranks agree on both after a case.
std::pair<double, bool> agree(const ccl::communicator &comm, double time, bool wrong)
{
    double mine[2] = {time, wrong ? 1.0 : 0.0}, all[2] = {0, 0};
    ccl::allreduce(mine, all, 2, ccl::reduction::max, comm).wait();
    return {all[0], all[1] != 0};
}

std::string joined(const std::vector<double> &times)
{
    std::string text;
    char one[32];
    for (const double time : times) {
        std::snprintf(one, sizeof one, "%s%.1f", text.empty() ? "" : ",", time);
        text += one;
    }
    return text.empty() ? "-" : text;
}

double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    return (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
}

// Microseconds that `work` takes on this rank; all begin together.
template <class F> double timed(const ccl::communicator &control, F work)
{
    agree(control, 0, false);
    const auto before = Clock::now();
    work();
    return std::chrono::duration<double, std::micro>(Clock::now() - before).count();
}

// Repeat one call and print its times; return whether all results were right on all ranks. For a comparison, it
// alternates with oneCCL's own, so both run under the same conditions.
bool run_case(std::size_t file, const Algorithm &algorithm, const Case &wanted, const Options &options, Tuner &tuner,
              const ccl::communicator &control)
{
    Trial trial(algorithm, options.rank, wanted);
    std::vector<double> times, own;
    std::unique_ptr<Builtin> builtin;
    if (options.compare && wanted.count && Builtin::has(algorithm))
        builtin = std::make_unique<Builtin>(algorithm, options.rank, wanted.count, wanted.type, wanted.op);
    bool bad = false;
    for (int k = -options.warmup; k < options.repeats; k++) {
        trial.fill();
        const double took = timed(control, [&] { trial.run(tuner); });
        const std::string wrong = trial.wrong();
        if (!wrong.empty() && !bad)
            std::fprintf(stderr, "collc-oneccl: rank %d: %s (%s, %s %s, count %zu, %s place)\n", options.rank, wrong.c_str(),
                         algorithm.collective.c_str(), wanted.type.c_str(), wanted.op.c_str(), wanted.count,
                         wanted.inplace ? "in" : "out of");
        const auto [time, any] = agree(control, took, !wrong.empty());
        bad = bad || any;
        if (k >= 0)
            times.push_back(time);
        if (!builtin)
            continue;
        const double theirs = agree(control, timed(control, [&] { builtin->run(control); }), false).first;
        if (k >= 0)
            own.push_back(theirs);
    }
    if (options.rank == 0) {
        std::printf("row %zu %s %s %s %zu %.1f %s %s %s\n", file, wanted.type.c_str(), wanted.op.empty() ? "-" : wanted.op.c_str(),
                    wanted.inplace ? "in" : "out", wanted.count, median(times), bad ? "wrong" : "exact", joined(times).c_str(),
                    joined(own).c_str());
        std::fflush(stdout);
    }
    return !bad;
}

} // namespace

int run_rank(const std::vector<Job> &jobs, const Options &options)
{
    bool good = true;
    try {
        ccl::init();
        const auto kvs = meet(options);
        const int size = jobs[0].algorithm.size();
        int most = 0;
        for (const Job &job : jobs)
            most = std::max(most, job.algorithm.channels);
        std::vector<ccl::communicator> channels;
        for (int c = 0; c < most; c++)
            channels.push_back(ccl::create_communicator(size, options.rank, kvs));
        // For the agreement of the ranks: only the files' messages use the channels.
        const ccl::communicator control = ccl::create_communicator(size, options.rank, kvs);
        for (std::size_t file = 0; file < jobs.size(); file++) {
            Executor executor(jobs[file].algorithm, options.rank, channels, std::chrono::seconds(options.timeout));
            Tuner tuner(jobs[file].algorithm, options.rank, executor, control, options.times.empty() ? "" : options.times[file]);
            for (const Case &wanted : jobs[file].cases)
                good = run_case(file, jobs[file].algorithm, wanted, options, tuner, control) && good;
        }
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "collc-oneccl: rank %d: %s\n", options.rank, problem.what());
        std::fflush(stderr);
        std::_Exit(1); // messages may be in flight, so no orderly end is possible
    }
    return good ? 0 : 1;
}

} // namespace collc::oneccl
