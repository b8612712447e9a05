// Reading: nested view iterators (source 003, section 4.2) that fill blocks of columns.
//
// Every iterator is opened with the values of those before it, so it yields only values that are in the answer. A
// factor that a loop has just found is not looked up again; the others are as soon as their variables are known.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "delta.hpp"
#include "map.hpp"

namespace ivme {

struct Loop {
    const Map* map;
    const GroupIndex* groups = nullptr;  // null with new variables: every entry matches
    std::vector<unsigned> key;           // variables, in the order of the group's key, or of the map's columns
    std::vector<std::pair<unsigned, unsigned>> yields;  // (column of the map, variable)
    bool checks = false;
};

struct Factor {
    const Map* map;
    std::vector<unsigned> variables;
    unsigned level = 0;  // the number of loops after which its variables are known
    int loop = -1;       // the loop whose entry it is
};

struct Extreme {
    enum class Function : uint8_t { Min, Max, CountDistinct } function;
    const Map* map;
    const SortedIndex* sorted = nullptr;
    const GroupIndex* groups = nullptr;
    unsigned value = 0;
    std::vector<unsigned> variables;  // of the map's columns; that of `value` is any
};

struct Reader {
    unsigned inputs = 0;
    unsigned variables = 0;
    std::vector<unsigned> outputs;
    std::vector<Loop> loops;
    std::vector<Factor> factors;
    std::vector<Extreme> extremes;
    std::vector<const Map*> maps;
    Layout layout;

    // Only grows, and differs whenever one of the maps has changed.
    uint64_t version() const {
        uint64_t total = 0;
        for (const Map* map : maps) total += map->version;
        return total;
    }
};

struct Block {
    std::vector<Array<int64_t>> columns;
    Array<int64_t> payloads;
    std::vector<Array<int64_t>> extremes;
    Array<int64_t> requests;
    size_t n = 0;

    void shape(const Reader& reader) {
        columns.resize(reader.outputs.size());
        extremes.resize(reader.extremes.size());
    }
};

// The state of one enumeration; it is resumed block by block while the maps stay as they are.
class Enumerator {
public:
    explicit Enumerator(const Reader& reader);

    // NULL matches nothing, unless it is to match the NULLs that are there, as in the groups of a result.
    void open(const int64_t* inputs, bool nulls_match = false);
    // Fetches where a request with these inputs will begin.
    void prefetch(const int64_t* inputs) const;
    // Appends at most `limit` rows and returns whether there may be more.
    bool fill(Block& block, size_t limit, uint64_t& operations);

private:
    struct Level {
        Members members;
        const uint32_t* ids = nullptr;
        uint32_t at = 0;
        uint32_t end = 0;
        uint32_t entry = NIL;
    };

    void enter(unsigned level, uint64_t& operations);
    bool advance(unsigned level);
    void resolve(unsigned level);
    bool emit(Block& block, uint64_t& operations);
    int64_t extreme(const Extreme& extreme) const;

    const Reader& reader_;
    std::vector<Level> levels_;
    std::vector<int64_t> values_;
    std::vector<const int64_t*> found_;
    std::vector<int64_t> payload_;
    unsigned depth_ = 0;
    bool fresh_ = false;
    bool done_ = true;
};

}  // namespace ivme
