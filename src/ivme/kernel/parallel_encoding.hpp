// A record batch to codes on several threads: strings are looked up in parts, and those that are new get their codes in
// their order, so that all get the codes that one thread would give them.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "arrow.hpp"
#include "workers.hpp"

namespace ivme {

class ParallelEncoding {
public:
    // The columns that are not shared are encoded, one behind the other.
    ParallelEncoding(const std::vector<ArrowColumn>& columns, const ArrowArray& array,
                     const std::vector<const int64_t*>& shared, int64_t* codes)
        : rows_(static_cast<size_t>(array.length)) {
        for (size_t c = 0; c < columns.size(); ++c) {
            if (shared[c]) continue;
            jobs_.push_back({columns[c], *array.children[c], codes, {}});
            codes += rows_;
        }
    }

    // False if a value is in doubt.
    bool run(unsigned threads) {
        std::vector<Dictionary*> dictionaries;
        for (const Job& job : jobs_) {
            Dictionary* dictionary = job.column.dictionary;
            bool is_known = std::find(dictionaries.begin(), dictionaries.end(), dictionary) != dictionaries.end();
            if (dictionary && !is_known) dictionaries.push_back(dictionary);
        }
        if (dictionaries.empty()) return run_pieces(nullptr, true, threads);
        return std::all_of(dictionaries.begin(), dictionaries.end(), [&](Dictionary* dictionary) {
            return run_strings(dictionary, dictionary == dictionaries[0], threads);
        });
    }

private:
    struct Job {
        const ArrowColumn& column;
        const ArrowArray& array;
        int64_t* codes;
        Array<uint32_t> tags;
    };
    struct Piece {
        Job* job;
        size_t first, end;
    };
    static constexpr size_t PIECE = 2048;

    bool run_strings(Dictionary* dictionary, bool with_numbers, unsigned threads) {
        std::unique_lock lock(dictionary->mutex);
        if (!run_pieces(dictionary, with_numbers, threads)) return false;
        for (Job& job : jobs_) {
            if (job.column.dictionary == dictionary)
                ArrowStrings(job.column, job.array).enter(job.codes, job.tags.data());
        }
        return true;
    }

    // The columns of a dictionary, in pieces, and those that have none.
    bool run_pieces(const Dictionary* dictionary, bool with_numbers, unsigned threads) {
        std::vector<Piece> pieces;
        for (Job& job : jobs_) {
            bool is_string = job.column.dictionary;
            if (is_string ? job.column.dictionary != dictionary : !with_numbers) continue;
            if (is_string) job.tags.resize(rows_);
            size_t step = is_string ? PIECE : rows_;
            for (size_t first = 0; first < rows_; first += step) {
                pieces.push_back({&job, first, std::min(rows_, first + step)});
            }
        }
        std::atomic<bool> certain = true;
        in_parallel(threads, pieces.size(), [&](size_t number) {
            auto& [job, first, end] = pieces[number];
            bool found = job->column.dictionary
                             ? ArrowStrings(job->column, job->array).find(first, end, job->codes, job->tags.data())
                             : encode_column(job->column, job->array, job->codes);
            if (!found) certain = false;
        });
        return certain;
    }

    size_t rows_;
    std::vector<Job> jobs_;
};

}  // namespace ivme
