// What a row of groups shows of the values in its group: extremes, percentiles, how many, and all of them.
#include <algorithm>
#include <cmath>

#include "cursor.hpp"

namespace ivme {

namespace {

// Appends the values of a group with their counts; the place where they begin.
int64_t append_values(const Extreme& extreme, const int64_t* key, Array<int64_t>& lists, uint64_t& operations) {
    const Map& map = *extreme.map;
    size_t start = lists.size();
    lists.push(0);
    auto append = [&](uint32_t entry) {
        lists.push(map.row(entry)[extreme.value]);
        lists.push(map.payload(entry)[0]);
        ++operations;
    };
    if (extreme.groups) {
        const GroupIndex& groups = *extreme.groups;
        Members members = groups.members(groups.find(key, groups.tag(key)));
        for (uint32_t i = 0; i < members.n; ++i) append(members.begin()[i]);
    } else {
        for (uint32_t entry = 0; entry < map.high(); ++entry) {
            if (map.alive(entry)) append(entry);
        }
    }
    lists[start] = static_cast<int64_t>(lists.size() - start - 1) / 2;
    return static_cast<int64_t>(start);
}

// The positions, from 0 on, of the values that a percentile of so many is made of: as Spark computes them, in floats.
std::pair<int64_t, int64_t> positions(const Extreme& extreme, int64_t n) {
    int64_t lower, upper;
    if (extreme.function == Extreme::Function::Discrete) {
        lower = upper =
            std::max(int64_t{0}, static_cast<int64_t>(std::ceil(static_cast<double>(n) * extreme.fraction)) - 1);
    } else {
        double position = static_cast<double>(n - 1) * extreme.fraction;
        lower = static_cast<int64_t>(std::floor(position));
        upper = static_cast<int64_t>(std::ceil(position));
    }
    lower = std::min(lower, n - 1);
    upper = std::min(upper, n - 1);
    return extreme.descending ? std::pair{n - 1 - upper, n - 1 - lower} : std::pair{lower, upper};
}

// Appends what stands for the values of a group in a percentile: NULL, the value at its position, and the next one if
// it is between two, each with the copies that are there for it. `count` is how often other tables have the row in all.
int64_t append_percentile(const Extreme& extreme, const int64_t* key, const int64_t* null_row, int64_t count,
                          Array<int64_t>& lists, uint64_t& operations) {
    const Map& map = *extreme.map;
    size_t start = lists.size();
    lists.push(0);
    auto append = [&](int64_t value, int64_t copies) {
        lists.push(value);
        lists.push(copies);
        ++lists[start];
    };
    uint32_t null = map.find(null_row);
    int64_t nulls = null == NIL ? 0 : map.payload(null)[0], known = extreme.sorted->total(key);
    if (nulls) append(NULL_CODE, nulls);
    if (known > 0) {
        int64_t times = std::max(int64_t{1}, count / (known + nulls)), low_end, high_end;
        auto [low, high] = positions(extreme, known * times);
        uint32_t first = extreme.sorted->at(key, low / times, low_end, operations);
        uint32_t second = extreme.sorted->at(key, high / times, high_end, operations);
        append(map.row(first)[extreme.value], first == second ? known : low_end);
        if (first != second) append(map.row(second)[extreme.value], known - low_end);
    }
    return static_cast<int64_t>(start);
}

}  // namespace

int64_t Enumerator::extreme(const Extreme& extreme, Stage& stage, unsigned row, int64_t count, Block& block,
                            uint64_t& operations) const {
    int64_t key[Map::MAX_ARITY], whole[Map::MAX_ARITY];
    unsigned n = 0;
    for (unsigned i = 0; i < extreme.map->arity(); ++i) {
        whole[i] = i == extreme.value ? NULL_CODE : stage.values[extreme.variables[i]][row];
        if (i != extreme.value) key[n++] = whole[i];
    }
    if (extreme.function == Extreme::Function::Values) return append_values(extreme, key, block.lists, operations);
    if (extreme.listed()) return append_percentile(extreme, key, whole, count, block.lists, operations);
    if (extreme.function != Extreme::Function::CountDistinct) {
        uint32_t id = extreme.sorted->extreme(key, extreme.function == Extreme::Function::Max);
        return id == NIL ? NULL_CODE : extreme.map->row(id)[extreme.value];
    }
    uint64_t size = extreme.map->size();
    if (extreme.groups) {
        size = extreme.groups->size(extreme.groups->find(key, extreme.groups->tag(key)));
    }
    return static_cast<int64_t>(size) - (extreme.map->find(whole) != NIL);
}

}  // namespace ivme
