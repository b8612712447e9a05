// Runs the triggers of one TPC-H query over a stream that lies in a folder, and prints CPU and wall seconds and the
// number of changes; the answer goes to a file. Usage: triggers QUERY FOLDER ANSWER SKIPPED
// The first SKIPPED batches are not timed. Triggers by hand know the keys of the tables; those that are derived, as a
// compiler of triggers derives them, do not.
#include <ctime>
#include <string_view>

#include "derived/q1.hpp"
#include "derived/q10.hpp"
#include "derived/q12.hpp"
#include "derived/q18.hpp"
#include "derived/q3.hpp"
#include "derived/q4.hpp"
#include "derived/q5.hpp"
#include "q1.hpp"
#include "q10.hpp"
#include "q12.hpp"
#include "q18.hpp"
#include "q3.hpp"
#include "q4.hpp"
#include "q5.hpp"

static double seconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Query>
int run(const Source& source, const char* answer, long skipped) {
    Query query(source);
    std::vector<Run> runs = source.runs();
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    long changes = 0;
    for (const Run& each : runs) {
        if (each.table < 0) {
            if (--skipped == 0) {
                cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
                wall = seconds(CLOCK_MONOTONIC);
                changes = 0;
            }
            continue;
        }
        auto table = static_cast<Table>(each.table);
        auto sign = static_cast<double>(each.sign);
        for (int64_t row = each.start; row < each.start + each.rows; ++row) {
            query.change(table, static_cast<size_t>(row), sign);
        }
        changes += each.rows;
    }
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    std::FILE* out = std::fopen(answer, "w");
    query.print(out);
    std::fclose(out);
    std::printf("%.9f %.9f %ld\n", cpu, wall, changes);
    return 0;
}

struct Named {
    std::string_view name;
    int (*run)(const Source&, const char*, long);
};

constexpr Named QUERIES[] = {
    {"q1", run<Q1>},
    {"q3", run<Q3>},
    {"q4", run<Q4>},
    {"q5", run<Q5>},
    {"q10", run<Q10>},
    {"q12", run<Q12>},
    {"q18", run<Q18>},
    {"derived-q1", run<DerivedQ1>},
    {"derived-q3", run<DerivedQ3>},
    {"derived-q4", run<DerivedQ4>},
    {"derived-q5", run<DerivedQ5>},
    {"derived-q10", run<DerivedQ10>},
    {"derived-q12", run<DerivedQ12>},
    {"derived-q18", run<DerivedQ18>},
};

int main(int count, char** given) {
    if (count != 5) return 2;
    for (const Named& query : QUERIES) {
        if (query.name == given[1]) return query.run(Source(given[2]), given[3], std::atol(given[4]));
    }
    return 2;
}
