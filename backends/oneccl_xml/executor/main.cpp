// collc-oneccl FILE... [options]: load oneCCL-XML files, start their ranks on this machine, run and check them.
#include "ranks.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>

namespace {

using namespace collc::oneccl;

const char *const usage =
    "usage: collc-oneccl FILE.xml... [OPTIONS]\n"
    "Runs oneCCL-XML files on as many processes as they have ranks, and checks every element on every rank.\n"
    "  --count N[,N...]   elements of a call, as oneCCL's own call counts them (default 1000)\n"
    "  --dtype T[,T...]   element types (default float32)\n"
    "  --op OP[,OP...]    operations, where the collective adds (default sum)\n"
    "  --place in,out     calls in place, out of place (default: those the file is for)\n"
    "  --repeat K         calls of each case that are timed (default 1)\n"
    "  --warmup K         calls of each case before those (default 0)\n"
    "  --compare          time oneCCL's own collective too, by turns, out of place\n"
    "  --tune TIMES       time the file against oneCCL's own collective, once for each class of sizes, keep the times in\n"
    "                     the file TIMES, and use the faster one; once for each FILE, in their order\n"
    "  --timeout S        seconds for everything (default 120)\n"
    "  --load             only load the file and hold it to the rules\n"
    "Every case prints `row FILE TYPE OP PLACE COUNT MEDIAN exact TIMES OWN` or `wrong`: FILE is a number, the first is 0;\n"
    "times are microseconds on the slowest rank, with commas; OWN are oneCCL's, - where there are none.\n"
    "Exit status: 0 done, 1 refused, wrong or failed, 2 wrong usage.\n";

struct Usage : std::runtime_error {
    using runtime_error::runtime_error;
};

std::vector<std::string> split(const std::string &text)
{
    std::vector<std::string> found;
    std::istringstream stream(text);
    for (std::string one; std::getline(stream, one, ',');)
        found.push_back(one);
    return found;
}

std::int64_t whole(const std::string &text, std::int64_t low, std::int64_t high)
{
    if (text.empty() || text.size() > 15 || text.find_first_not_of("0123456789") != std::string::npos)
        throw Usage("`" + text + "` is not a whole number");
    const std::int64_t value = std::stoll(text);
    if (value < low || value > high)
        throw Usage("`" + text + "` is not in " + std::to_string(low) + " to " + std::to_string(high));
    return value;
}

Options parse(int argc, char **argv)
{
    Options found;
    for (int k = 1; k < argc; k++) {
        const std::string word = argv[k];
        if (word.rfind("--", 0) != 0) {
            found.paths.push_back(word);
            continue;
        }
        if (word == "--load") {
            found.load_only = true;
            continue;
        }
        if (word == "--compare") {
            found.compare = true;
            continue;
        }
        if (k + 1 == argc)
            throw Usage(word + " needs a value");
        const std::string value = argv[++k];
        if (word == "--count")
            for (const std::string &one : split(value))
                found.counts.push_back(static_cast<std::size_t>(whole(one, 0, 1LL << 40)));
        else if (word == "--dtype")
            found.types = split(value);
        else if (word == "--op")
            found.ops = split(value);
        else if (word == "--place")
            found.places = split(value);
        else if (word == "--repeat")
            found.repeats = static_cast<int>(whole(value, 1, 1000000));
        else if (word == "--warmup")
            found.warmup = static_cast<int>(whole(value, 0, 1000000));
        else if (word == "--tune")
            found.times.push_back(value);
        else if (word == "--timeout")
            found.timeout = static_cast<int>(whole(value, 1, 1000000));
        else if (word == "--rank")
            found.rank = static_cast<int>(whole(value, 0, 65535));
        else if (word == "--folder")
            found.folder = value;
        else
            throw Usage("unknown option " + word);
    }
    if (found.paths.empty())
        throw Usage("no file is named");
    if (!found.times.empty() && found.times.size() != found.paths.size())
        throw Usage("--tune names times of " + std::to_string(found.times.size()) + " of " + std::to_string(found.paths.size()) + " files");
    return found;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2 && !std::strcmp(argv[1], "--help")) {
        std::fputs(usage, stdout);
        return 0;
    }
    std::string path = "collc-oneccl";
    try {
        Options options = parse(argc, argv);
        // All mistakes of a file are found here, before any communication.
        std::vector<Job> jobs;
        for (const std::string &name : options.paths) {
            path = name;
            jobs.push_back({load(name), {}});
            if (jobs[0].algorithm.size() != jobs.back().algorithm.size())
                throw std::runtime_error("the files are for different numbers of ranks");
            if (!options.load_only)
                jobs.back().cases = make_cases(jobs.back().algorithm, options);
        }
        path = "cannot run";
        if (options.load_only)
            return 0;
        return options.rank < 0 ? start_ranks(argv, jobs[0].algorithm.size(), options) : run_rank(jobs, options);
    } catch (const Usage &problem) {
        std::fprintf(stderr, "collc-oneccl: %s\n%s", problem.what(), usage);
        return 2;
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "collc-oneccl: %s: %s\n", path.c_str(), problem.what());
        return 1;
    }
}
