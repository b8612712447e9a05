#include "map.hpp"

#include <algorithm>
#include <stdexcept>

namespace ivme {

Map::Map(unsigned arity, Layout layout, const Seed& seed, const std::vector<unsigned>& key)
    : arity_(arity), layout_(std::move(layout)), stride_(arity + layout_.words), seed_(seed) {
    if (arity > MAX_ARITY) throw std::invalid_argument("a map has at most 64 columns");
    for (size_t i = 0; i < key.size(); ++i) {
        if (key[i] >= arity || (i && key[i] <= key[i - 1])) {
            throw std::invalid_argument("the key of a map has columns of it, in their order");
        }
    }
    if (!key.empty() && key.size() < arity) by_key_ = std::make_unique<GroupIndex>(key, seed_, this);
}

void Map::warm(const int64_t* keys, const uint32_t* tags, const int64_t* changes, unsigned n) const {
    constexpr unsigned MOST = 64, INDEXES = 4;
    uint32_t ids[MOST], groups[INDEXES][MOST];
    unsigned indexes = static_cast<unsigned>(std::min<size_t>(indexes_.size(), INDEXES));
    n = std::min(n, MOST);
    for (unsigned i = 0; i < n; ++i) {
        ids[i] = table_.guess(tags[i]);
        if (ids[i] != NIL) prefetch_row(ids[i]);
    }
    for (unsigned x = 0; x < indexes; ++x) {
        for (unsigned i = 0; i < n; ++i) {
            if (ids[i] == NIL) {
                groups[x][i] = indexes_[x]->row_tag(keys + i * arity_);
                indexes_[x]->warm_slot(groups[x][i]);
            } else if (changes[i * layout_.words] < 0) {
                indexes_[x]->warm_link(ids[i]);
            }
        }
    }
    for (unsigned x = 0; x < indexes; ++x) {
        for (unsigned i = 0; i < n; ++i) {
            if (ids[i] == NIL) {
                indexes_[x]->warm_group(groups[x][i]);
            } else if (changes[i * layout_.words] < 0) {
                indexes_[x]->warm_group_of(ids[i]);
            }
        }
    }
    for (unsigned x = 0; x < indexes; ++x) {
        for (unsigned i = 0; i < n; ++i) {
            if (ids[i] == NIL) {
                indexes_[x]->warm_tail(groups[x][i]);
            } else if (changes[i * layout_.words] < 0) {
                indexes_[x]->warm_place(ids[i]);
            }
        }
    }
}

void Map::add(const int64_t* key, uint32_t hashed, const int64_t* change, int64_t* old) {
    uint32_t id = find(key, hashed);
    if (id == NIL) {
        for (unsigned i = 0; i < layout_.words; ++i) old[i] = 0;
        if (!change[0]) return;
        if (!limits_.empty()) suspects_.reserve(suspects_.size() + 1);
        suspect(insert(key, hashed, change));
        return;
    }
    if (!limits_.empty()) suspects_.reserve(suspects_.size() + 1);
    int64_t* stored = records_.data() + static_cast<size_t>(id) * stride_ + arity_;
    if (layout_.plain()) {
        int64_t total;
        if (add_overflows(stored[0], change[0], &total)) throw Overflow();
        old[0] = stored[0];
        if (total) {
            stored[0] = total;
            recount(id, change[0]);
        } else {
            erase(id, hashed);
        }
        return;
    }
    std::copy(stored, stored + layout_.words, old);
    try {
        if (!layout_.add_stored(stored, stored, change)) throw Overflow();
    } catch (...) {
        std::copy(old, old + layout_.words, stored);
        throw;
    }
    if (stored[0]) {
        recount(id, change[0]);
        suspect(id);
    } else {
        erase(id, hashed);
    }
}

void Map::limit(const std::vector<Limit>& limits) {
    if (limits.size() != layout_.slots.size()) throw std::invalid_argument("a map has a limit for each of its slots");
    limits_.clear();
    suspects_.clear();
    unsigned at = 1;
    for (size_t i = 0; i < limits.size(); ++i) {
        unsigned words = width(layout_.slots[i]);
        if (limits[i] != Limit::None) {
            if (words < 2 || layout_.slots[i] == Slot::F64) throw std::invalid_argument("only wide sums have limits");
            limits_.push_back({at, words, limits[i]});
        }
        at += words;
    }
    for (uint32_t id = 0; !limits_.empty() && id < high(); ++id) {
        if (alive(id)) suspect(id);
    }
}

void Map::restore(const int64_t* key, const int64_t* old) {
    uint32_t hashed = tag(key);
    uint32_t id = find(key, hashed);
    if (!old[0]) {
        if (id != NIL) erase(id, hashed);
    } else if (id == NIL) {
        insert(key, hashed, old);
    } else {
        int64_t* stored = records_.data() + static_cast<size_t>(id) * stride_ + arity_;
        auto change = static_cast<int64_t>(static_cast<uint64_t>(old[0]) - static_cast<uint64_t>(stored[0]));
        std::copy(old, old + layout_.words, stored);
        recount(id, change);
    }
}

uint32_t Map::insert(const int64_t* key, uint32_t hashed, const int64_t* payload) {
    table_.reserve_one();
    uint32_t id = free_, other = find_other(key, hashed);
    if (id == NIL) {
        id = high();
        records_.resize(records_.size() + stride_);
    }
    int64_t* fresh = records_.data() + static_cast<size_t>(id) * stride_;
    uint32_t next = free_ == NIL || !arity_ ? NIL : static_cast<uint32_t>(fresh[0]);
    std::copy(key, key + arity_, fresh);
    std::copy(payload, payload + layout_.words, fresh + arity_);
    free_ = next;
    table_.insert(hashed, id);
    if (!indexes_.empty() || !projections_.empty() || !sorted_.empty() || other != NIL) {
        try {
            enter_indexes(id, other);
        } catch (...) {
            table_.erase(hashed, id);
            fresh[arity_] = 0;
            if (arity_) fresh[0] = free_;
            free_ = id;
            throw;
        }
    }
    return id;
}

void Map::erase(uint32_t id, uint32_t hashed) noexcept {
    leave_indexes(id, indexes_.size(), projections_.size(), sorted_.size());
    table_.erase(hashed, id);
    int64_t* dead = records_.data() + static_cast<size_t>(id) * stride_;
    dead[arity_] = 0;
    if (arity_) dead[0] = free_;
    free_ = id;
}

uint32_t Map::find_other(const int64_t* row, uint32_t hashed) const {
    if (!by_key_) return NIL;
    int64_t values[MAX_ARITY];
    for (size_t i = 0; i < by_key_->key().size(); ++i) values[i] = row[by_key_->key()[i]];
    return find_keyed(values, hashed);
}

void Map::enter_indexes(uint32_t id, uint32_t other) {
    size_t groups = 0, projections = 0, sorted = 0;
    try {
        if (other != NIL) by_key_->insert_beside(other, id, row(id));
        for (; groups < indexes_.size(); ++groups) indexes_[groups]->insert(id, row(id));
        for (; projections < projections_.size(); ++projections) support(projections_[projections], row(id), 1);
        for (; sorted < sorted_.size(); ++sorted) sorted_[sorted]->insert(id, rows(), payload(id)[0]);
    } catch (...) {
        leave_indexes(id, groups, projections, sorted);
        throw;
    }
}

void Map::leave_indexes(uint32_t id, size_t groups, size_t projections, size_t sorted) noexcept {
    if (by_key_) by_key_->erase_beside(id, row(id));
    for (size_t i = 0; i < groups; ++i) indexes_[i]->erase(id);
    for (size_t i = 0; i < projections; ++i) support(projections_[i], row(id), -1);
    for (size_t i = 0; i < sorted; ++i) sorted_[i]->erase(id, rows());
}

void Map::recount_indexes(uint32_t id, int64_t change) noexcept {
    for (auto& index : sorted_) {
        if (index->counted()) index->recount(id, rows(), change);
    }
}

void Map::support(Projection& projection, const int64_t* row, int64_t change) {
    int64_t key[MAX_ARITY], old;
    unsigned n = 0;
    for (unsigned column : projection.key) key[n++] = row[column];
    for (unsigned column : projection.values) key[n++] = row[column];
    projection.map->add(key, projection.map->tag(key), &change, &old);
}

void Map::add_index(const std::vector<unsigned>& key, const std::vector<unsigned>& values) {
    for (unsigned column : key) {
        if (column >= arity_) throw std::invalid_argument("an index names a column that the map does not have");
    }
    for (unsigned column : values) {
        if (column >= arity_) throw std::invalid_argument("an index names a column that the map does not have");
    }
    if (key.size() + values.size() == arity_) {
        if (key.empty() || index(key)) return;
        auto fresh = std::make_unique<GroupIndex>(key, seed_);
        for (uint32_t id = 0; id < high(); ++id) {
            if (alive(id)) fresh->insert(id, row(id));
        }
        indexes_.push_back(std::move(fresh));
        return;
    }
    if (projection(key, values)) return;
    Projection fresh{key, values, std::make_unique<Map>(count_of(key) + count_of(values), Layout(), seed_)};
    if (!key.empty() && !values.empty()) {
        std::vector<unsigned> first(key.size());
        for (unsigned i = 0; i < first.size(); ++i) first[i] = i;
        std::vector<unsigned> rest(values.size());
        for (unsigned i = 0; i < rest.size(); ++i) rest[i] = count_of(first) + i;
        fresh.map->add_index(first, rest);
    }
    for (uint32_t id = 0; id < high(); ++id) {
        if (alive(id)) support(fresh, row(id), 1);
    }
    projections_.push_back(std::move(fresh));
}

void Map::add_sorted(std::vector<unsigned> key, unsigned value, const Dictionary* order, bool counted) {
    if (sorted(key, value, counted)) return;
    if (key.size() + 1 != arity_ || value >= arity_) {
        throw std::invalid_argument("an ordered index has one value; all other columns are its key");
    }
    auto fresh = std::make_unique<SortedIndex>(std::move(key), value, order, seed_, counted);
    for (uint32_t id = 0; id < high(); ++id) {
        if (alive(id)) fresh->insert(id, rows(), payload(id)[0]);
    }
    sorted_.push_back(std::move(fresh));
    counted_ |= counted;
}

const GroupIndex* Map::index(const std::vector<unsigned>& key) const {
    if (by_key_ && by_key_->key() == key) return by_key_.get();
    for (const auto& index : indexes_) {
        if (index->key() == key) return index.get();
    }
    return nullptr;
}

const Projection* Map::projection(const std::vector<unsigned>& key, const std::vector<unsigned>& values) const {
    for (const auto& projection : projections_) {
        if (projection.key == key && projection.values == values) return &projection;
    }
    return nullptr;
}

const SortedIndex* Map::sorted(const std::vector<unsigned>& key, unsigned value, bool counted) const {
    for (const auto& index : sorted_) {
        if (index->key() == key && index->value() == value && (index->counted() || !counted)) return index.get();
    }
    return nullptr;
}

void Map::commit() {
    suspects_.clear();
    if (by_key_) by_key_->commit();
    for (auto& index : indexes_) index->commit();
    for (auto& projection : projections_) projection.map->commit();
    if (high() > 1024 && size() * 4 < high()) {
        try {
            compact();
        } catch (const std::bad_alloc&) {
            // It works as well with the memory it has.
        }
    }
}

// Builds a copy without gaps and takes its place, so that a failure in between changes nothing. Projections have
// maps of their own, which shrink by themselves.
void Map::compact() {
    Map fresh(arity_, layout_, seed_, key());
    fresh.table_.reserve(size());
    fresh.records_.reserve(size() * stride_);
    for (const auto& index : indexes_) fresh.indexes_.push_back(std::make_unique<GroupIndex>(index->key(), seed_));
    for (const auto& index : sorted_) {
        fresh.sorted_.push_back(std::make_unique<SortedIndex>(index->without_entries()));
    }
    for (uint32_t id = 0; id < high(); ++id) {
        if (alive(id)) fresh.insert(row(id), tag(row(id)), payload(id));
    }
    std::swap(table_, fresh.table_);
    records_.swap(fresh.records_);
    free_ = fresh.free_;
    // Triggers and readers point at the index objects, so these stay and only their contents move.
    if (by_key_) by_key_->swap_groups(*fresh.by_key_);
    for (size_t i = 0; i < indexes_.size(); ++i) indexes_[i]->swap_groups(*fresh.indexes_[i]);
    for (size_t i = 0; i < sorted_.size(); ++i) std::swap(*sorted_[i], *fresh.sorted_[i]);
}

void Map::undoing(bool value) {
    if (by_key_) by_key_->undoing(value);
    for (auto& index : indexes_) index->undoing(value);
    for (auto& projection : projections_) projection.map->undoing(value);
}

void Map::clear() {
    table_.clear();
    records_.trim(4096);
    free_ = NIL;
    if (by_key_) by_key_->clear();
    for (auto& index : indexes_) index->clear();
    for (auto& projection : projections_) projection.map->clear();
    for (auto& index : sorted_) index->clear();
}

size_t Map::bytes() const {
    size_t total = sizeof(*this) + table_.bytes() + records_.bytes();
    if (by_key_) total += sizeof(*by_key_) + by_key_->bytes();
    for (const auto& index : indexes_) total += sizeof(*index) + index->bytes();
    for (const auto& projection : projections_) total += sizeof(projection) + projection.map->bytes();
    for (const auto& index : sorted_) total += sizeof(*index) + index->bytes();
    return total;
}

void Map::mark_floats() const noexcept {
    for (uint32_t id = 0; id < high(); ++id) {
        if (alive(id)) layout_.each_long(payload(id), [](const int64_t* sum) { long_float(sum)->marked = true; });
    }
}

bool Map::mark_entries(CodeMarks& marks) const {
    bool has_codes = false;
    for (uint32_t id = 0; id < high(); ++id) {
        if (!alive(id)) continue;
        for (unsigned i = 0; i < arity_; ++i) has_codes |= marks.mark(row(id)[i]);
    }
    return has_codes;
}

}  // namespace ivme
