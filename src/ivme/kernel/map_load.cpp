// Whole maps out of the kernel and into it, for snapshots: the entries as they are stored, and indexes made of them.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "delta.hpp"
#include "map.hpp"

namespace ivme {

void Map::dump(Array<int64_t>& records) const {
    records.resize(size() * stride_);
    int64_t* next = records.data();
    uint32_t end = high();
    for (uint32_t id = 0; id < end;) {
        uint32_t first = id;
        while (id < end && alive(id)) ++id;
        next = std::copy(row(first), row(first) + static_cast<size_t>(id - first) * stride_, next);
        while (id < end && !alive(id)) ++id;
    }
    if (layout_.has_floats) dump_floats(records);
}

void Map::dump_floats(Array<int64_t>& records) const {
    size_t words = records.size();
    std::vector<int64_t> floats;
    for (size_t at = 0; at < words; at += stride_) {
        layout_.each_long(records.data() + at + arity_, [&](int64_t* sum) {
            const LongFloat& from = *long_float(sum);
            sum[1] = static_cast<int64_t>(floats.size());
            dump_long(from, floats);
        });
    }
    for (int64_t word : floats) records.push(word);
    records.push(static_cast<int64_t>(words));
}

// Makes the long floats of records that have been copied; how many words the records have.
size_t Map::load_floats(const int64_t* given, size_t words) {
    constexpr const char* REASON = "the floats are not those of a map of this shape";
    if (!words || given[words - 1] < 0 || static_cast<size_t>(given[words - 1]) >= words) {
        throw std::invalid_argument(REASON);
    }
    size_t kept = static_cast<size_t>(given[words - 1]), rest = words - 1 - kept;
    if (kept % stride_) throw std::invalid_argument(REASON);
    for (size_t at = 0; at < kept; at += stride_) {
        layout_.each_long(records_.data() + at + arity_, [&](int64_t* sum) {
            size_t place = static_cast<size_t>(sum[1]);
            if (place >= rest || !load_long(sum, given + kept + place, rest - place, *layout_.pool)) {
                throw std::invalid_argument(REASON);
            }
        });
    }
    return kept;
}

void Map::load(const int64_t* records, size_t words) {
    if (size()) throw std::invalid_argument("only a map without entries can be loaded");
    if (!layout_.has_floats && words % stride_) {
        throw std::invalid_argument("the words are not those of a map of this shape");
    }
    if (words / stride_ >= NIL) throw Capacity("a map cannot hold more than 4 billion entries");
    clear();
    try {
        records_.resize(words);
        if (words) std::copy_n(records, words, records_.data());
        if (layout_.has_floats) records_.resize(load_floats(records, words));
        load_entries();
        load_indexes();
    } catch (...) {
        clear();
        throw;
    }
    commit();
}

void Map::load_entries() {
    uint32_t tags[BLOCK], count = high();
    table_.reserve(count);
    for (uint32_t start = 0; start < count; start += BLOCK) {
        unsigned n = std::min<uint32_t>(BLOCK, count - start);
        for (unsigned i = 0; i < n; ++i) {
            tags[i] = tag(row(start + i));
            table_.prefetch(tags[i]);
        }
        for (unsigned i = 0; i < n; ++i) {
            if (!alive(start + i)) throw std::invalid_argument("an entry to load has no count");
            if (find(row(start + i), tags[i]) != NIL) throw std::invalid_argument("an entry to load is there twice");
            uint32_t other = find_other(row(start + i), tags[i]);
            table_.insert(tags[i], start + i);
            if (other != NIL) by_key_->insert_beside(other, start + i, row(start + i));
        }
    }
}

// By index and block, so that the misses of a block overlap.
void Map::load_indexes() {
    uint32_t count = high();
    for (auto& index : indexes_) {
        for (uint32_t start = 0; start < count; start += BLOCK) {
            uint32_t tags[BLOCK], n = std::min<uint32_t>(BLOCK, count - start);
            for (unsigned i = 0; i < n; ++i) index->warm_slot(tags[i] = index->row_tag(row(start + i)));
            for (unsigned i = 0; i < n; ++i) index->warm_group(tags[i]);
            for (unsigned i = 0; i < n; ++i) index->warm_tail(tags[i]);
            for (unsigned i = 0; i < n; ++i) index->insert(start + i, row(start + i));
        }
    }
    for (auto& projection : projections_) {
        for (uint32_t id = 0; id < count; ++id) support(projection, row(id), 1);
    }
    for (auto& index : sorted_) {
        for (uint32_t id = 0; id < count; ++id) index->insert(id, rows(), payload(id)[0]);
    }
}

}  // namespace ivme
