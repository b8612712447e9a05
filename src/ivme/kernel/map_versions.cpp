// What a map was, apart from what it becomes.
#include "map.hpp"

namespace ivme {

namespace {

// An index of the same kind, with the same entries if `full`.
template <class Index>
std::unique_ptr<Index> copy_of(const Index& index, bool full) {
    return full ? std::make_unique<Index>(index) : std::make_unique<Index>(index.without_entries());
}

}  // namespace

std::unique_ptr<Map> Map::copy(bool full) const {
    auto made = std::make_unique<Map>(arity_, layout_, seed_, key());
    if (by_key_ && full) {
        GroupIndex groups(*by_key_);
        made->by_key_->swap_groups(groups);
    }
    for (const auto& index : indexes_) made->indexes_.push_back(copy_of(*index, full));
    for (const auto& index : sorted_) made->sorted_.push_back(copy_of(*index, full));
    made->counted_ = counted_;
    for (const auto& [key, values, map] : projections_) made->projections_.push_back({key, values, map->copy(full)});
    if (!full) return made;
    made->table_ = IdTable(table_);
    made->records_ = Array<int64_t>(records_);
    made->free_ = free_;
    return made;
}

void Map::swap_entries(Map& other) noexcept {
    std::swap(table_, other.table_);
    records_.swap(other.records_);
    std::swap(free_, other.free_);
    if (by_key_) by_key_->swap_groups(*other.by_key_);
    for (size_t i = 0; i < indexes_.size(); ++i) indexes_[i]->swap_groups(*other.indexes_[i]);
    for (size_t i = 0; i < sorted_.size(); ++i) std::swap(*sorted_[i], *other.sorted_[i]);
    for (size_t i = 0; i < projections_.size(); ++i) projections_[i].map->swap_entries(*other.projections_[i].map);
}

std::unique_ptr<Map> Map::hand_over(bool keeps_copy) {
    auto old = copy(keeps_copy);
    swap_entries(*old);
    return old;
}

const Map* Map::twin(const Map* map, const Map& other) const {
    if (map == this) return &other;
    for (size_t i = 0; i < projections_.size(); ++i) {
        const Map* found = projections_[i].map->twin(map, *other.projections_[i].map);
        if (found) return found;
    }
    return nullptr;
}

const GroupIndex* Map::twin(const GroupIndex* index, const Map& other) const {
    if (index == by_key_.get()) return other.by_key_.get();
    for (size_t i = 0; i < indexes_.size(); ++i) {
        if (indexes_[i].get() == index) return other.indexes_[i].get();
    }
    for (size_t i = 0; i < projections_.size(); ++i) {
        const GroupIndex* found = projections_[i].map->twin(index, *other.projections_[i].map);
        if (found) return found;
    }
    return nullptr;
}

const SortedIndex* Map::twin(const SortedIndex* index, const Map& other) const {
    for (size_t i = 0; i < sorted_.size(); ++i) {
        if (sorted_[i].get() == index) return other.sorted_[i].get();
    }
    return nullptr;
}

}  // namespace ivme
