// Runs the triggers of one TPC-H query over a stream that lies in a folder, and prints CPU and wall seconds and the
// number of changes; the answer goes to a file. Usage: triggers QUERY FOLDER ANSWER SKIPPED
// The first SKIPPED batches are not timed.
#include <cstring>
#include <ctime>

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

int main(int count, char** given) {
    if (count != 5) return 2;
    Source source(given[2]);
    long skipped = std::atol(given[4]);
    const char* answer = given[3];
    if (!std::strcmp(given[1], "q1")) return run<Q1>(source, answer, skipped);
    if (!std::strcmp(given[1], "q3")) return run<Q3>(source, answer, skipped);
    if (!std::strcmp(given[1], "q4")) return run<Q4>(source, answer, skipped);
    if (!std::strcmp(given[1], "q5")) return run<Q5>(source, answer, skipped);
    if (!std::strcmp(given[1], "q10")) return run<Q10>(source, answer, skipped);
    if (!std::strcmp(given[1], "q12")) return run<Q12>(source, answer, skipped);
    if (!std::strcmp(given[1], "q18")) return run<Q18>(source, answer, skipped);
    return 2;
}
