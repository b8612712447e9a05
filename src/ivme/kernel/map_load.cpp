// Whole maps out of the kernel and into it, for snapshots: the entries as they are stored, and indexes made of them.
#include <algorithm>
#include <stdexcept>

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
}

void Map::load(const int64_t* records, size_t words) {
    if (size()) throw std::invalid_argument("only a map without entries can be loaded");
    if (words % stride_) throw std::invalid_argument("the words are not those of a map of this shape");
    if (words / stride_ >= NIL) throw Capacity("a map cannot hold more than 4 billion entries");
    clear();
    try {
        records_.resize(words);
        if (words) std::copy_n(records, words, records_.data());
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
            table_.insert(tags[i], start + i);
        }
    }
}

// By index and block, so that the misses of a block overlap.
void Map::load_indexes() {
    uint32_t count = high();
    for (auto& index : indexes_) {
        for (uint32_t start = 0; start < count; start += BLOCK) {
            uint32_t tags[BLOCK], n = std::min<uint32_t>(BLOCK, count - start);
            for (unsigned i = 0; i < n; ++i) index->warm_slot(tags[i] = index->tag(row(start + i)));
            for (unsigned i = 0; i < n; ++i) index->warm_group(tags[i]);
            for (unsigned i = 0; i < n; ++i) index->warm_tail(tags[i]);
            for (unsigned i = 0; i < n; ++i) index->insert(start + i, row(start + i));
        }
    }
    for (auto& projection : projections_) {
        for (uint32_t id = 0; id < count; ++id) support(projection, row(id), 1);
    }
    for (auto& index : sorted_) {
        for (uint32_t id = 0; id < count; ++id) index->insert(id, rows());
    }
}

}  // namespace ivme
