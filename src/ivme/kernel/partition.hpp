// Heavy/light partitions (source 003, section 5.1): the degrees of keys, and the keys that have to change sides.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "map.hpp"
#include "uses.hpp"

namespace ivme {

// A part of a leaf as it is given: a map, and the index from the key to the values that are counted.
struct PartSpec {
    Map* map;
    std::vector<unsigned> key, values;
};

// One part of a leaf. All tables of a kernel hash alike, so that a key's tag serves in each.
struct Part {
    const Map* target = nullptr;         // the map, or its projection if columns stay open
    const GroupIndex* groups = nullptr;  // null: the key is a whole tuple of `target`, which is there once or not
    std::vector<unsigned> places;        // without groups, where the columns of the key are in `target`
    bool permuted = false;

    uint64_t count(const int64_t* key, uint32_t tag) const;
    uint64_t most() const { return groups ? groups->largest() : target->size() != 0; }
    void prefetch(uint32_t tag) const;
};

// How many tuples a leaf has for a key, in all its parts. A part without tuples is not asked.
struct Degree {
    std::vector<Part> parts;

    uint64_t of(const int64_t* key, uint32_t tag) const {
        uint64_t total = 0;
        for (const Part& part : parts) total += part.target->size() ? part.count(key, tag) : 0;
        return total;
    }
    // The parts that have tuples.
    unsigned asked() const {
        return static_cast<unsigned>(
            std::ranges::count_if(parts, [](const Part& part) { return part.target->size() != 0; }));
    }
    // The same, or none if a key may have so many tuples.
    unsigned asked_below(uint64_t limit) const {
        unsigned asked = 0;
        uint64_t most = 0;
        for (const Part& part : parts) {
            if (!part.target->size()) continue;
            ++asked;
            most += part.most();
        }
        return most < limit ? asked : 0;
    }
};

// The noted keys are maps of their own, so that the undo log takes them back with everything else.
struct Partition {
    Partition(Map* heavy, const std::vector<std::vector<PartSpec>>& leaves);
    Partition(const Partition&) = delete;
    Partition& operator=(const Partition&) = delete;
    ~Partition() = default;

    unsigned arity() const { return heavy->arity(); }
    size_t bytes() const { return sizeof(*this) + rising.bytes() + falling.bytes(); }

    Map* heavy;
    std::vector<Degree> degrees;
    Uses<Map> maps;
    Map rising, falling;
    uint64_t lower = 0;
    uint64_t upper = ~uint64_t{0};
    unsigned users = 0;
};

// Distinct keys, by column.
struct Keys {
    explicit Keys(unsigned arity) : columns(arity) {}
    void push(const int64_t* key) {
        for (unsigned c = 0; c < columns.size(); ++c) columns[c].push(key[c]);
        ++n;
    }
    std::vector<Array<int64_t>> columns;
    size_t n = 0;
};

struct NotedKeys {
    explicit NotedKeys(unsigned arity) : rising(arity), falling(arity) {}
    Keys rising, falling;
};

}  // namespace ivme
