// A record batch to codes on several threads: strings are looked up in parts, and those that are new get their codes in
// their order, so that all get the codes that one thread would give them.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "arrow.hpp"
#include "workers.hpp"

namespace ivme {

// So many values take longer than to wake a thread several times, and to share out what there is to do. Tests share
// fewer.
inline std::atomic<size_t> shared_values = 20'000;

// A column to encode, and where its codes go; without such a place its values are checked only.
struct EncodingJob {
    const ArrowColumn* column;
    const ArrowArray* array;
    int64_t* codes;
    bool is_loose = false;  // its strings are mostly new, and nobody compares them
    bool were_sampled = true;

    // False if a value is in doubt.
    bool run(Brought& brought) const {
        return codes ? encode_column(*column, *array, codes, brought) : check_column(*column, *array);
    }
    // Whose codes it takes, if it takes codes of strings.
    Dictionary* dictionary() const { return codes ? column->dictionary : nullptr; }
};

using EncodingJobs = std::vector<EncodingJob>;

class ParallelEncoding {
public:
    ParallelEncoding(EncodingJobs jobs, size_t rows) : rows_(rows), jobs_(std::move(jobs)) {}

    // False if a value is in doubt.
    bool run(unsigned threads, Brought& brought) {
        if (threads == 1) return run_alone(brought);
        std::vector<Dictionary*> dictionaries;
        for (const EncodingJob& job : jobs_) {
            Dictionary* dictionary = job.dictionary();
            bool is_known = std::find(dictionaries.begin(), dictionaries.end(), dictionary) != dictionaries.end();
            if (dictionary && !is_known) dictionaries.push_back(dictionary);
        }
        if (dictionaries.empty()) {
            std::vector<Piece> pieces = cut(nullptr, true);
            return run_pieces(pieces, 0, threads, [](size_t) { return true; });
        }
        return std::all_of(dictionaries.begin(), dictionaries.end(), [&](Dictionary* dictionary) {
            return run_strings(dictionary, dictionary == dictionaries[0], threads, brought);
        });
    }

private:
    struct Piece {
        EncodingJob* job;
        size_t first, end;
        NewStrings absent;
    };
    static constexpr size_t PIECE = 512;

    bool run_strings(Dictionary* dictionary, bool with_numbers, unsigned threads, Brought& brought) {
        std::unique_lock lock(dictionary->mutex);
        uint64_t before = dictionary->ever_added();
        std::vector<Piece> pieces = cut(dictionary, with_numbers);
        reserve_loose(*dictionary);
        if (!run_pieces(pieces, 1, threads, [&](size_t) { return encode_loosely(*dictionary); })) return false;
        std::vector<NewStrings*> absent;
        for (Piece& piece : pieces) {
            if (!piece.absent.strings.empty()) absent.push_back(&piece.absent);
        }
        if (!absent.empty()) ParallelEntry(*dictionary, std::move(absent), threads).run();
        brought.push_back({dictionary, dictionary->ever_added() - before});
        return true;
    }

    // The columns of a dictionary, in pieces, and those that have none.
    std::vector<Piece> cut(const Dictionary* dictionary, bool with_numbers) {
        std::vector<Piece> pieces;
        for (EncodingJob& job : jobs_) {
            bool is_string = job.dictionary();
            if (job.is_loose || (is_string ? job.dictionary() != dictionary : !with_numbers)) continue;
            size_t step = is_string ? PIECE : rows_;
            for (size_t first = 0; first < rows_; first += step) {
                pieces.push_back({&job, first, std::min(rows_, first + step), {job.codes, {}}});
            }
        }
        return pieces;
    }

    bool run_alone(Brought& brought) const {
        return std::all_of(jobs_.begin(), jobs_.end(), [&](const EncodingJob& job) {
            if (!job.is_loose) return job.run(brought);
            Dictionary& dictionary = *job.column->dictionary;
            std::unique_lock lock(dictionary.mutex);
            uint64_t before = dictionary.ever_added();
            ArrowStrings strings(*job.column, *job.array);
            dictionary.reserve_loose(rows_, strings.loose_bytes());
            if (!strings.encode_loosely(job.codes, job.were_sampled)) return false;
            brought.push_back({&dictionary, dictionary.ever_added() - before});
            return true;
        });
    }

    // The loose strings of a dictionary. Others may look for strings meanwhile, if there is room.
    void reserve_loose(Dictionary& dictionary) const {
        size_t strings = 0, bytes = 0;
        each_loose(dictionary, [&](const EncodingJob& job) {
            strings += rows_;
            bytes += ArrowStrings(*job.column, *job.array).loose_bytes();
        });
        if (strings) dictionary.reserve_loose(strings, bytes);
    }
    bool encode_loosely(const Dictionary& dictionary) const {
        bool certain = true;
        each_loose(dictionary, [&](const EncodingJob& job) {
            ArrowStrings strings(*job.column, *job.array);
            certain = certain && strings.encode_loosely(job.codes, job.were_sampled);
        });
        return certain;
    }
    template <class Visit>
    void each_loose(const Dictionary& dictionary, Visit visit) const {
        for (const EncodingJob& job : jobs_) {
            if (job.is_loose && job.column->dictionary == &dictionary) visit(job);
        }
    }

    // So many tasks of another kind, and the pieces.
    template <class Task>
    static bool run_pieces(std::vector<Piece>& pieces, size_t others, unsigned threads, Task other) {
        std::atomic<bool> certain = true;
        in_parallel(threads, others + pieces.size(), [&](size_t number) {
            if (number < others) {
                if (!other(number)) certain = false;
                return;
            }
            auto& [job, first, end, absent] = pieces[number - others];
            Brought none;
            bool found = job->dictionary()
                             ? ArrowStrings(*job->column, *job->array).find(first, end, job->codes, absent.strings)
                             : job->run(none);
            if (!found) certain = false;
        });
        return certain;
    }

    size_t rows_;
    EncodingJobs jobs_;
};

}  // namespace ivme
