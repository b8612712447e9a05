// The columns of a table as Arrow has them: one call takes a record batch to codes.
#pragma once

#include <atomic>
#include <memory>

#include "arrow.hpp"
#include "arrow_copy.hpp"
#include "bind.hpp"
#include "parallel_encoding.hpp"

namespace ivme {

// A record batch that Arrow has handed over.
struct GivenArrow {
    explicit GivenArrow(const nb::tuple& capsules) {
        if (capsules.size() != 2) throw std::invalid_argument("__arrow_c_array__ returns two capsules");
        schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(capsules[0].ptr(), "arrow_schema"));
        if (!schema) throw nb::python_error();
        array = static_cast<ArrowArray*>(PyCapsule_GetPointer(capsules[1].ptr(), "arrow_array"));
        if (!array) throw nb::python_error();
    }

    ArrowSchema* schema;
    ArrowArray* array;
};

class ArrowColumns {
public:
    using Spec = std::tuple<std::string, std::string, int64_t, int64_t, nb::object>;

    explicit ArrowColumns(const std::vector<Spec>& specs) {
        for (const auto& [name, format, least, most, dictionary] : specs) {
            bool strings = format == "u" || format == "z";
            if (!has_codes(format)) throw std::invalid_argument("there are no codes for Arrow's format " + format);
            if (strings == dictionary.is_none())
                throw std::invalid_argument("strings, and they only, have a dictionary");
            columns_.push_back({name, format, least, most, strings ? dictionary_of(dictionary) : nullptr});
            if (strings) held_.push_back(dictionary);
        }
        unsampled_ = std::make_unique<Unsampled[]>(columns_.size());
    }

    // The codes of each column; None if the data are of other types, or a value is in doubt. Columns that are their own
    // codes share Arrow's memory. `given` are the two capsules that `__arrow_c_array__` returns.
    nb::object encode(const nb::tuple& given) const {
        auto [schema, array] = GivenArrow(given);
        if (!array->length || !takes(*schema, *array)) return nb::none();
        std::vector<const int64_t*> shared(columns_.size());
        Array<int64_t> codes;
        bool certain = true;
        {
            nb::gil_scoped_release release;
            Brought brought;
            std::vector<unsigned> loose;
            certain = encode_all(*array, shared, codes, brought, loose, {});
        }
        if (!certain) return nb::none();
        return shown(shared, std::move(codes), static_cast<size_t>(array->length), given[1], {}, {});
    }

    std::shared_ptr<const ArrowCopy> copied(const ArrowArray& array, const std::vector<unsigned>& left_out) const {
        return ArrowCopy::make(columns_, array, left_out);
    }

    bool takes(const ArrowSchema& schema, const ArrowArray& array) const { return is_of(columns_, schema, array); }

    size_t size() const { return columns_.size(); }

    // Of a record batch, a string counts for several values.
    size_t work(const ArrowArray& array) const {
        constexpr size_t STRING = 8;
        return static_cast<size_t>(array.length) * (columns_.size() + (STRING - 1) * held_.size());
    }

    // Finds the columns that are their own codes, and encodes the others, one behind the other. More threads give the
    // same codes. Of the columns in `loose` strings may be loose; it is left with those of which some are. Columns that
    // are `unread` are checked only.
    bool encode_all(const ArrowArray& array, std::vector<const int64_t*>& shared, Array<int64_t>& codes,
                    Brought& brought, std::vector<unsigned>& loose, const std::vector<unsigned>& unread,
                    unsigned threads = 1) const {
        size_t rows = static_cast<size_t>(array.length);
        EncodingJobs jobs = jobs_of(array, shared, codes, brought, loose, unread);
        auto takes_codes = [](const EncodingJob& job) { return job.codes != nullptr; };
        auto encoded = static_cast<size_t>(std::count_if(jobs.begin(), jobs.end(), takes_codes));
        bool is_shared = threads > 1 && encoded > 1 && encoded * rows >= shared_values && allocation_budget < 0;
        return ParallelEncoding(std::move(jobs), rows).run(is_shared ? threads : 1, brought);
    }
    // What that is made of, a job for each column.
    EncodingJobs jobs_of(const ArrowArray& array, std::vector<const int64_t*>& shared, Array<int64_t>& codes,
                         Brought& brought, std::vector<unsigned>& loose, const std::vector<unsigned>& unread) const {
        size_t encoded = 0, rows = static_cast<size_t>(array.length);
        for (unsigned c = 0; c < columns_.size(); ++c) {
            shared[c] = own_codes(columns_[c], *array.children[c]);
            encoded += !shared[c] && !has_place(unread, c);
        }
        if (!unread.empty()) encoded = std::max<size_t>(encoded, 1);  // words in place of those of unread columns
        if (encoded) codes = SpareCodes::shared().take(encoded * rows);
        if (rows < MANY_STRINGS) loose.clear();
        EncodingJobs jobs;
        size_t at = 0;
        for (unsigned c = 0; c < columns_.size(); ++c) {
            bool is_coded = !shared[c] && !has_place(unread, c);
            jobs.push_back({&columns_[c], array.children[c], is_coded ? codes.data() + at : nullptr});
            if (!is_coded) continue;
            at += rows;
            auto found = std::find(loose.begin(), loose.end(), c);
            if (found == loose.end()) continue;
            EncodingJob& job = jobs.back();
            look_whether_loose(c, job, brought);
            if (!job.is_loose) loose.erase(found);
        }
        return jobs;
    }

    // The dictionaries of strings, and how often codes of theirs were taken back.
    void note_sweeps(std::vector<std::pair<const Dictionary*, uint64_t>>& sweeps) const {
        for (const ArrowColumn& column : columns_) {
            if (column.dictionary) sweeps.emplace_back(column.dictionary, column.dictionary->sweeps());
        }
    }

    // In place of columns with loose strings, and of unread ones, there is None.
    static nb::object shown(const std::vector<const int64_t*>& shared, Array<int64_t>&& codes, size_t rows,
                            const nb::object& array, const std::vector<unsigned>& loose,
                            const std::vector<unsigned>& unread) {
        auto* owned = new Array<int64_t>(std::move(codes));
        nb::capsule owner(owned, [](void* p) noexcept {
            auto* block = static_cast<Array<int64_t>*>(p);
            SpareCodes::shared().give(std::move(*block));
            delete block;
        });
        nb::list columns;
        size_t at = 0;
        for (unsigned c = 0; c < shared.size(); ++c) {
            using Shared = nb::ndarray<nb::numpy, const int64_t, nb::ndim<1>>;
            using Own = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;
            if (shared[c]) {
                columns.append(nb::cast(Shared(shared[c], {rows}, array)));
                continue;
            }
            if (has_place(unread, c)) {
                columns.append(nb::none());
                continue;
            }
            columns.append(has_place(loose, c) ? nb::none() : nb::cast(Own(owned->data() + at, {rows}, owner)));
            at += rows;
        }
        return columns;
    }

private:
    // For how many batches no sample of a column's strings is taken, and what they count as.
    struct Unsampled {
        std::atomic<unsigned> batches = 0, as_new_before = 0;
        std::atomic<bool> are_new = false;
    };

    // Makes strings of a column loose that nobody compares, if most are new, as a sample says. Of one whose strings
    // were nearly all known no sample is taken for some batches, and of one whose strings were nearly all new for twice
    // as many as the last time: values that repeat after a while are found out.
    void look_whether_loose(size_t column, EncodingJob& job, Brought& brought) const {
        Unsampled& unsampled = unsampled_[column];
        if (unsigned left = unsampled.batches) {
            unsampled.batches = left - 1;
            job.is_loose = unsampled.are_new;
            job.were_sampled = false;
            return;
        }
        auto [known, all] = ArrowStrings(*job.column, *job.array).sample(job.codes, brought);
        job.is_loose = 2 * known < all;
        if (all < MANY_SAMPLED) return;
        bool are_new = 16 * known <= all, are_known = 16 * known >= 15 * all;
        unsampled.are_new = are_new;
        unsampled.batches = are_known ? KNOWN_FOR : are_new ? unsampled.as_new_before.load() : 0;
        unsampled.as_new_before = are_new ? std::min(2 * unsampled.as_new_before + 1, MOST_AS_NEW) : 0;
    }

    static constexpr size_t MANY_SAMPLED = 16;
    static constexpr unsigned KNOWN_FOR = 15, MOST_AS_NEW = 7;
    // Of fewer strings it is not worth finding out whether most are new.
    static constexpr size_t MANY_STRINGS = 64;

    std::vector<ArrowColumn> columns_;
    std::vector<nb::object> held_;
    std::unique_ptr<Unsampled[]> unsampled_;  // by column
};

}  // namespace ivme
