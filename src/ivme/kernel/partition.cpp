#include "partition.hpp"

#include <algorithm>
#include <stdexcept>

#include "machine.hpp"

namespace ivme {

namespace {

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

bool are_all_columns(std::vector<unsigned> columns, unsigned arity) {
    std::sort(columns.begin(), columns.end());
    for (unsigned i = 0; i < columns.size(); ++i) {
        if (columns[i] != i) return false;
    }
    return columns.size() == arity;
}

Part resolve(const PartSpec& spec) {
    Part part;
    part.target = spec.map;
    part.places = spec.key;
    require(!spec.map->is_keyed(), "the parts of a partition are hashed by all their columns");
    if (spec.key.size() + spec.values.size() != spec.map->arity()) {
        const Projection* projection = spec.map->projection(spec.key, spec.values);
        require(projection, "a partition needs a projection that its map does not have");
        part.target = projection->map.get();
        for (unsigned i = 0; i < part.places.size(); ++i) part.places[i] = i;
    }
    if (spec.values.empty()) {
        require(are_all_columns(part.places, part.target->arity()), "a degree's key names a column twice");
        part.permuted = !std::is_sorted(part.places.begin(), part.places.end());
    } else {
        part.groups = part.target->index(part.places);
        require(part.groups, "a partition needs an index that its map does not have");
    }
    return part;
}

// Writes down a change of the noted keys, so that it can be undone.
void note(Map& noted, const int64_t* key, uint32_t tag, int64_t change, UndoLog& log) {
    log.open(&noted, 1);
    int64_t* undo = log.next();
    noted.add(key, tag, &change, undo + noted.arity());
    std::copy_n(key, noted.arity(), undo);
    log.wrote(&noted);
    log.close(&noted, 1);
}

uint64_t count_keys(const Part& part) { return part.groups ? part.groups->groups().size() : part.target->size(); }

// Visits every key of a part.
template <class Visit>
void each_key(const Part& part, Visit visit) {
    if (part.groups) {
        const GroupTable& groups = part.groups->groups();
        groups.each([&](uint32_t group) { visit(groups.key(group)); });
        return;
    }
    int64_t key[Map::MAX_ARITY];
    for (uint32_t id = 0; id < part.target->high(); ++id) {
        if (!part.target->alive(id)) continue;
        for (unsigned i = 0; i < part.places.size(); ++i) key[i] = part.target->row(id)[part.places[i]];
        visit(key);
    }
}

}  // namespace

uint64_t Part::count(const int64_t* key, uint32_t tag) const {
    if (groups) return groups->size(groups->groups().find(key, tag));
    if (!permuted) return target->find(key, tag) != NIL;
    int64_t row[Map::MAX_ARITY];
    for (unsigned i = 0; i < places.size(); ++i) row[places[i]] = key[i];
    return target->find(row) != NIL;
}

void Part::prefetch(uint32_t tag) const {
    if (groups) {
        groups->groups().prefetch(tag);
    } else if (!permuted) {
        target->prefetch(tag);
    }
}

Partition::Partition(Map* keys, const std::vector<std::vector<PartSpec>>& leaves)
    : heavy(keys), rising(keys->arity(), Layout(), keys->seed()), falling(keys->arity(), Layout(), keys->seed()) {
    maps.add(keys);
    require(keys->arity(), "a partition has a key of at least one column");
    require(!leaves.empty(), "a partition has at least one leaf that counts");
    for (const auto& leaf : leaves) {
        degrees.emplace_back();
        for (const PartSpec& spec : leaf) {
            require(spec.key.size() == keys->arity(), "a degree's key has the columns of the heavy keys");
            degrees.back().parts.push_back(resolve(spec));
            maps.add(spec.map);
        }
    }
}

// A key counts one operation for the heavy map, if there are any, and one for each part of a leaf that is asked.
void Machine::watch(const WatchStep& step, const Delta& origin, UndoLog& log) {
    Partition& partition = *step.partition;
    const Map& heavy = *partition.heavy;
    const Degree& degree = partition.degrees[step.leaf];
    unsigned asked = heavy.size() ? 0 : degree.asked_below(partition.upper);
    if (asked) {  // no key can rise, and there is none to fall
        operations += origin.n * asked;
        return;
    }
    operations += heavy.size() ? origin.n : 0;
    KeyColumns columns(origin, step.columns);
    auto gather = [&](size_t row, int64_t* key) {
        columns.gather(row, key);
        uint32_t tag = heavy.tag(key);
        for (const Part& part : degree.parts) part.prefetch(tag);
    };
    probe_keys(heavy, block_, origin.n, gather, [&](size_t, const int64_t* key, uint32_t tag) {
        bool is_heavy = heavy.size() && heavy.find(key, tag) != NIL;
        Map& noted = is_heavy ? partition.falling : partition.rising;
        bool moves = is_heavy ? falls(partition, key, tag, step.leaf) : rises(partition, key, tag, step.leaf);
        if (moves && noted.find(key, tag) == NIL) note(noted, key, tag, 1, log);
    });
}

bool Machine::rises(const Partition& partition, const int64_t* key, uint32_t tag, unsigned leaf) {
    operations += partition.degrees[leaf].asked();
    return partition.degrees[leaf].of(key, tag) >= partition.upper;
}

bool Machine::falls(const Partition& partition, const int64_t* key, uint32_t tag, unsigned first) {
    auto is_small = [&](const Degree& degree) {
        operations += degree.asked();
        return degree.of(key, tag) < partition.lower;
    };
    if (!is_small(partition.degrees[first])) return false;
    for (unsigned leaf = 0; leaf < partition.degrees.size(); ++leaf) {
        if (leaf != first && !is_small(partition.degrees[leaf])) return false;
    }
    return true;
}

NotedKeys Machine::take_noted(Partition& partition, UndoLog& log) {
    NotedKeys taken(partition.arity());
    const Map& heavy = *partition.heavy;
    auto take = [&](Map& noted, bool was_heavy, Keys& keys, auto still) {
        operations += noted.size();
        for (uint32_t id = 0; id < noted.high(); ++id) {
            if (!noted.alive(id)) continue;
            int64_t key[Map::MAX_ARITY];
            std::copy_n(noted.row(id), noted.arity(), key);
            uint32_t tag = noted.tag(key);
            if ((heavy.find(key, tag) != NIL) == was_heavy && still(key, tag)) keys.push(key);
            note(noted, key, tag, -1, log);
        }
    };
    take(partition.rising, false, taken.rising, [&](const int64_t* key, uint32_t tag) {
        for (unsigned leaf = 0; leaf < partition.degrees.size(); ++leaf) {
            if (rises(partition, key, tag, leaf)) return true;
        }
        return false;
    });
    take(partition.falling, true, taken.falling,
         [&](const int64_t* key, uint32_t tag) { return falls(partition, key, tag, 0); });
    return taken;
}

int64_t Machine::sweep(Partition& partition, uint64_t position, uint64_t count, UndoLog& log) {
    std::vector<std::pair<unsigned, const Part*>> parts;
    for (unsigned leaf = 0; leaf < partition.degrees.size(); ++leaf) {
        for (const Part& part : partition.degrees[leaf].parts) parts.emplace_back(leaf, &part);
    }
    uint64_t stage = position >> 32;
    uint32_t id = static_cast<uint32_t>(position);
    int64_t key[Map::MAX_ARITY];
    while (stage <= parts.size()) {
        const Map& map = stage ? *parts[stage - 1].second->target : *partition.heavy;
        if (id >= map.high()) {
            ++stage;
            id = 0;
            continue;
        }
        if (!count--) return static_cast<int64_t>(stage << 32 | id);
        ++operations;
        if (map.alive(id)) {
            const int64_t* row = map.row(id);
            for (unsigned i = 0; i < partition.arity(); ++i) {
                key[i] = stage ? row[parts[stage - 1].second->places[i]] : row[i];
            }
            uint32_t tag = partition.heavy->tag(key);
            bool is_heavy = stage == 0 || partition.heavy->find(key, tag) != NIL;
            bool moves = is_heavy ? stage == 0 && falls(partition, key, tag, 0)
                                  : rises(partition, key, tag, parts[stage - 1].first);
            Map& noted = is_heavy ? partition.falling : partition.rising;
            if (moves && noted.find(key, tag) == NIL) note(noted, key, tag, 1, log);
        }
        ++id;
    }
    return -1;
}

NotedKeys Machine::census(const Partition& partition, uint64_t threshold) {
    ++scans;
    NotedKeys found(partition.arity());
    Map seen(partition.arity(), Layout(), partition.heavy->seed());
    int64_t one = 1, old;
    for (const Degree& degree : partition.degrees) {
        bool is_below = degree.asked_below(threshold) != 0;  // no key has so many
        for (const Part& part : degree.parts) {
            if (is_below) {
                operations += count_keys(part);
                continue;
            }
            each_key(part, [&](const int64_t* key) {
                ++operations;
                poll_interrupt();
                uint32_t tag = partition.heavy->tag(key);
                if (degree.of(key, tag) < threshold || partition.heavy->find(key, tag) != NIL) return;
                if (seen.find(key, tag) != NIL) return;
                seen.add(key, tag, &one, &old);
                found.rising.push(key);
            });
        }
    }
    for (uint32_t id = 0; id < partition.heavy->high(); ++id) {
        if (!partition.heavy->alive(id)) continue;
        ++operations;
        const int64_t* key = partition.heavy->row(id);
        uint32_t tag = partition.heavy->tag(key);
        bool small = true;
        for (const Degree& degree : partition.degrees) small = small && degree.of(key, tag) < threshold;
        if (small) found.falling.push(key);
    }
    return found;
}

}  // namespace ivme
