// Record batches on their way to a table: the codes of their columns and, beside another batch, what triggers load.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "arrow_columns.hpp"
#include "loads_ahead.hpp"

namespace ivme {

// The columns of `key` are never NULL. Nothing but the table takes `loose` columns of strings, and nothing at all
// `unread` ones.
class ArrowPath {
public:
    ArrowPath(const ArrowColumns& columns, std::vector<unsigned> key, std::vector<unsigned> loose,
              std::vector<unsigned> unread, std::unique_ptr<LoadsAhead> loads)
        : columns_(columns),
          key_(std::move(key)),
          loose_(std::move(loose)),
          unread_(std::move(unread)),
          loads_(std::move(loads)) {}

    // The codes of a record batch that has been validated; false if the batch path has to take it. Strings that only
    // come may be loose.
    bool encode(const nb::tuple& capsules, EncodedRows& rows, bool comes, unsigned threads) const {
        const ArrowArray* array = begin(capsules, rows, comes);
        if (!array) return false;
        nb::gil_scoped_release release;
        return finish(*array, rows, threads);
    }
    // What is to be encoded, as long as `rows` last; null as before.
    const ArrowArray* begin(const nb::tuple& capsules, EncodedRows& rows, bool comes) const {
        auto [schema, array] = GivenArrow(capsules);
        if (!array->length || !columns_.takes(*schema, *array)) return nullptr;
        rows.n = static_cast<size_t>(array->length);
        rows.shared.resize(columns_.size());
        rows.array = nb::object(capsules[1]);
        if (comes) rows.loose = loose_;
        rows.unread = unread_;
        columns_.note_sweeps(rows.sweeps);
        rows.work = columns_.work(*array);
        return array;
    }
    // What `finish` may be given in its place; null if the batch path has to take it. Columns that nobody reads, nor
    // may read later, are left out.
    std::shared_ptr<const ArrowCopy> copied(const ArrowArray& array, bool leaves_unread_out) const {
        return columns_.copied(array, leaves_unread_out ? unread_ : std::vector<unsigned>());
    }
    // Without the GIL, and without any lock: others may write meanwhile.
    bool finish(const ArrowArray& array, EncodedRows& rows, unsigned threads) const {
        return columns_.encode_all(array, rows.shared, rows.codes, rows.brought, rows.loose, rows.unread, threads) &&
               has_keys(rows);
    }
    // The same column by column, in any order and on several threads: those whose strings share a dictionary are
    // together. `has_keys` comes last.
    std::vector<EncodingJobs> columns_of(const ArrowArray& array, EncodedRows& rows) const {
        std::vector<EncodingJobs> found;
        for (const EncodingJob& job :
             columns_.jobs_of(array, rows.shared, rows.codes, rows.brought, rows.loose, rows.unread)) {
            const Dictionary* dictionary = job.dictionary();
            auto shares = [&](const EncodingJobs& jobs) { return dictionary && jobs[0].dictionary() == dictionary; };
            auto known = std::find_if(found.begin(), found.end(), shares);
            if (known == found.end()) known = found.emplace(known);
            known->push_back(job);
        }
        return found;
    }
    bool has_keys(const EncodedRows& rows) const {
        std::vector<const int64_t*> places = rows.places();
        return std::none_of(key_.begin(), key_.end(), [&](unsigned column) {
            return std::find(places[column], places[column] + rows.n, NULL_CODE) != places[column] + rows.n;
        });
    }

    LoadsAhead& loads() const { return *loads_; }

private:
    const ArrowColumns& columns_;
    std::vector<unsigned> key_, loose_, unread_;
    std::unique_ptr<LoadsAhead> loads_;
};

}  // namespace ivme
