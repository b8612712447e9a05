// Whether a map is what it says: digests, and the checks of tests.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "map.hpp"

namespace ivme {

// A record whose long floats are told by their values, not by where they are.
uint64_t Map::hash_record(const Seed& seed, uint32_t id) const {
    if (!layout_.has_floats) return seed.hash(row(id), stride_);
    std::vector<int64_t> record(row(id), row(id) + stride_);
    layout_.each_long(record.data() + arity_, [](int64_t* sum) { sum[1] = static_cast<int64_t>(hash_float(sum)); });
    return seed.hash(record.data(), stride_);
}

// Sums of hashes, so that neither the order of entries nor where they are stored matters.
uint64_t Map::digest(uint64_t salt) const {
    Seed mix(salt);
    uint64_t total = mix.start ^ size();
    for (uint32_t id = 0; id < high(); ++id) {
        if (alive(id)) total += hash_record(mix, id);
    }
    for (size_t i = 0; i < indexes_.size(); ++i) {
        Seed own(salt * 31 + 2 * i + 1);
        const GroupIndex& index = *indexes_[i];
        index.groups().each([&](uint32_t group) {
            Members members = index.members(group);
            total += own.hash(index.groups().key(group), index.groups().arity()) * (members.n + 1);
            for (uint32_t m = 0; m < members.n; ++m) total += hash_record(own, members.begin()[m]);
        });
    }
    for (size_t i = 0; i < projections_.size(); ++i) total += projections_[i].map->digest(salt * 37 + i);
    for (size_t i = 0; i < sorted_.size(); ++i) {
        Seed own(salt * 41 + i);
        sorted_[i]->groups().each(
            [&](uint32_t group) { sorted_[i]->each(group, [&](uint32_t id) { total += hash_record(own, id); }); });
    }
    return total;
}

namespace {

void require(bool holds, const char* what) {
    if (!holds) throw std::logic_error(what);
}

}  // namespace

// The index by the key finds what one with a group for each key has.
void Map::verify_keys() const {
    GroupIndex expected(by_key_->key(), seed_);
    for (uint32_t id = 0; id < high(); ++id) {
        if (alive(id)) expected.insert(id, row(id));
    }
    uint64_t crowded = 0;
    expected.groups().each([&](uint32_t group) {
        const int64_t* key = expected.groups().key(group);
        Members all = expected.members(group), found = by_key_->members(by_key_->find(key, by_key_->tag(key)));
        require(std::is_permutation(all.begin(), all.begin() + all.n, found.begin(), found.begin() + found.n),
                "the entries of a key are others");
        crowded += all.n > 1;
    });
    require(crowded == by_key_->groups().size(), "a key of one entry has a group");
}

void Map::verify() const {
    uint64_t live = 0;
    for (uint32_t id = 0; id < high(); ++id) {
        if (!alive(id)) continue;
        ++live;
        require(find(row(id)) == id, "an entry cannot be found by its key");
        for (const auto& index : indexes_) {
            Members members = index->members(index->group_of(id));
            require(index->place_of(id) < members.n, "an entry is outside its group");
            require(members.begin()[index->place_of(id)] == id, "an entry is not where its index says");
            const int64_t* key = index->groups().key(index->group_of(id));
            for (unsigned i = 0; i < index->key().size(); ++i) {
                require(key[i] == row(id)[index->key()[i]], "an entry is in another key's group");
            }
        }
    }
    require(live == size(), "the table does not hold the entries");
    if (by_key_) verify_keys();
    for (const auto& index : indexes_) {
        uint64_t counted = 0;
        index->groups().each([&](uint32_t group) {
            require(index->size(group) > 0, "an empty group stayed behind");
            counted += index->size(group);
        });
        require(counted == live, "an index does not hold every entry");
    }
    for (const auto& projection : projections_) {
        projection.map->verify();
        Map expected(projection.map->arity(), Layout(), seed_);
        Projection recount{projection.key, projection.values, nullptr};
        recount.map = std::make_unique<Map>(projection.map->arity(), Layout(), seed_);
        for (uint32_t id = 0; id < high(); ++id) {
            if (alive(id)) const_cast<Map*>(this)->support(recount, row(id), 1);
        }
        require(recount.map->size() == projection.map->size(), "a projection has another size");
        for (uint32_t id = 0; id < recount.map->high(); ++id) {
            uint32_t other = projection.map->find(recount.map->row(id));
            require(other != NIL, "a projection misses a tuple");
            require(recount.map->payload(id)[0] == projection.map->payload(other)[0], "a support is off");
        }
    }
    for (const auto& index : sorted_) {
        uint64_t counted = 0, expected = 0;
        for (uint32_t id = 0; id < high(); ++id) expected += alive(id) && row(id)[index->value()] != NULL_CODE;
        index->groups().each([&](uint32_t group) {
            uint32_t last = NIL;
            index->each(group, [&](uint32_t id) {
                require(last == NIL || index->less(row(last), row(id)), "an ordered index is out of order");
                if (index->counted()) {
                    require(index->count_at(id) == static_cast<uint64_t>(payload(id)[0]),
                            "an ordered index counts wrong");
                }
                last = id;
                ++counted;
            });
        });
        require(counted == expected, "an ordered index does not hold every entry");
    }
}

}  // namespace ivme
