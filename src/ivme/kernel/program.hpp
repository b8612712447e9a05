// The steps of a trigger with registers as numbers and columns as positions (plan/ir/program.py says what they mean).
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "heap.hpp"
#include "map.hpp"
#include "partition.hpp"

namespace ivme {

// The use of a map in a join. All of it is in terms of `target`: the map, or its projection if columns stay open.
struct Read {
    Map* map = nullptr;
    const Map* target = nullptr;
    const GroupIndex* groups = nullptr;  // null: every entry of `target` matches
    std::vector<unsigned> look;          // for each column of `target`, the column of the joined delta
    std::vector<unsigned> group_key;     // for each key column of `groups`, the column of the joined delta
    std::vector<unsigned> yields;        // for each new column, the column of `target`
    bool payload = true;
    bool partial = false;
    int overlay = -1;  // the trigger's overlay that holds the pending delta
    const Map* pending_target = nullptr;
    const GroupIndex* pending_groups = nullptr;
};

enum class LiftKind : uint8_t { None, One, Count, Int, Float, Int128, Product };

struct Lift {
    LiftKind kind = LiftKind::None;
    unsigned column = 0;  // of the input; Int128 and Product take the next one too
    bool square = false;  // of the value: of an int, a float, or a wide number below 2^64
};

struct LoadStep {
    unsigned target, input;
    std::vector<unsigned> columns;
    std::vector<std::pair<unsigned, int64_t>> constants;
    std::vector<std::pair<unsigned, unsigned>> equals;
    std::vector<unsigned> not_null;
    std::vector<Lift> lifts;
    bool consolidate = true;
};

// Adds the rows of an input to a table.
struct StoreStep {
    unsigned input;
    std::vector<unsigned> columns;  // of the input, for each of the table
    Heap* heap;
    bool may_be_negative;
};

struct ScanStep {
    unsigned target;
    const Map* map;
    bool indicator;
};

struct JoinStep {
    unsigned target, origin, known, added;
    std::vector<Read> reads;
    // With a sum right behind it that nobody else reads, the join hands its rows on without storing them.
    bool fused = false;
    unsigned sum_target = 0;
    std::vector<unsigned> sum_columns;
};

struct ProjectStep {
    unsigned target, origin;
    std::vector<unsigned> columns;
    bool permutes;
    bool counts = true;  // not if its origin is a load that nobody else reads: reading the row pays for it
};

// The tuples of its origin over some columns, each once, with the payload 1.
struct DistinctStep {
    unsigned target, origin;
    std::vector<unsigned> columns;
};

struct ExistsStep {
    unsigned target, origin;
    const Map* map;
};

struct FilterStep {
    unsigned target, origin;
    const Map* map;
    std::vector<unsigned> columns;
    bool present;
};

// What a map demands of the counts that an add leaves: anything, none below zero, or zero and one only.
enum class Check : uint8_t { none, present, unique };

struct AddStep {
    unsigned origin;
    Map* map;
    Check check;
    // Where the changes of presence go that an exists step right before would have found; none if negative.
    int presence = -1;
};

struct EmitStep {
    unsigned origin;
};

struct WatchStep {
    unsigned origin;
    Partition* partition;
    std::vector<unsigned> columns;
    unsigned leaf;
};

using Step = std::variant<LoadStep, StoreStep, ScanStep, JoinStep, ProjectStep, DistinctStep, ExistsStep, FilterStep,
                          AddStep, EmitStep, WatchStep>;

}  // namespace ivme
