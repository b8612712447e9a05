// Runs the steps of a trigger: each takes whole deltas and hands one on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "delta.hpp"
#include "loaded_rows.hpp"
#include "probe.hpp"
#include "program.hpp"
#include "row_groups.hpp"
#include "undo.hpp"
#include "uses.hpp"

namespace ivme {

// The changed rows of a relation as they come in: one code a column, one weight a row.
struct Input {
    size_t n = 0;
    std::vector<const int64_t*> columns;
    const int64_t* weights = nullptr;

    // One of so many pieces of about the same size.
    Input piece(size_t number, size_t pieces) const {
        size_t first = n * number / pieces, end = n * (number + 1) / pieces;
        Input cut{end - first, {}, weights + first};
        for (const int64_t* column : columns) cut.columns.push_back(column + first);
        return cut;
    }
};

// A pending delta, laid out so that reads of its map can see it: the count of an entry is its row plus one.
struct Overlay {
    unsigned pending;
    std::unique_ptr<Map> map;
    bool built = false;
};

struct Trigger {
    static uint64_t next_number() {
        static std::atomic<uint64_t> last = 0;
        return ++last;
    }

    uint64_t number = next_number();  // no other trigger has it
    std::vector<Step> steps;
    std::vector<Delta> registers;
    std::vector<Overlay> overlays;
    std::vector<unsigned> emits;
    std::vector<unsigned> input_widths;
    Uses<Map> maps;
    Uses<Heap> heaps;
    Uses<Partition> partitions;
    Uses<Map> empty;  // as long as these have no entries, it does what a trigger with more steps does
    std::vector<std::unique_ptr<Trigger>> pieces;  // have nothing but registers

    // What has the registers for a piece of the rows, so that several may be under way: the trigger itself has those of
    // the first.
    Trigger& of_piece(size_t piece) {
        if (!piece) return *this;
        while (pieces.size() < piece) {
            pieces.push_back(std::make_unique<Trigger>());
            std::vector<Delta>& own = pieces.back()->registers;
            own.resize(registers.size());
            for (size_t i = 0; i < own.size(); ++i) own[i].shape(count_of(registers[i].columns), registers[i].layout);
        }
        return *pieces[piece - 1];
    }
    template <class... Keep>
    void trim(Keep... keep) noexcept {
        for (Delta& delta : registers) delta.trim(keep...);
        for (auto& piece : pieces) piece->trim(keep...);
    }
    size_t bytes() const {
        size_t total = 0;
        for (const Delta& delta : registers) total += delta.bytes();
        for (const Overlay& overlay : overlays) total += overlay.map->bytes();
        for (const auto& piece : pieces) total += piece->bytes();
        return total;
    }
};

class Machine {
public:
    explicit Machine(const Seed& seed) : consolidator_(seed) {}

    // Changes maps and logs how to undo it; on an exception the log holds what was done.
    void run(Trigger& trigger, const std::vector<Input>& inputs, UndoLog& log, LoadedJob* loaded = nullptr);
    // One of its steps, if what that reads is there. `own` has the registers of a piece of the rows.
    void run_step(Trigger& own, const Step& step, const std::vector<Input>& inputs, UndoLog& log);
    // The same, unless it is a load that was done before.
    void run_step(Trigger& own, const Step& step, const std::vector<Input>& inputs, UndoLog& log, LoadedJob* loaded,
                  size_t piece);
    void load(const LoadStep& step, const Input& input, Delta& target);

    // A part of a step that adds rows to a table (see Heap::begin_append).
    void store_part(const StoreStep& step, unsigned part, const Input& input, UndoLog& log);

    // Takes the noted keys that still have to change sides, and forgets the others.
    NotedKeys take_noted(Partition& partition, UndoLog& log);
    // Notes the keys on the wrong side among the next `count` entries, the heavy keys first; where to go on, or -1.
    int64_t sweep(Partition& partition, uint64_t position, uint64_t count, UndoLog& log);
    // All light keys that reach the threshold in some leaf, and all heavy ones that do in none, by visiting every key.
    NotedKeys census(const Partition& partition, uint64_t threshold);

    // Gives up buffers that one large batch left behind.
    void trim() noexcept {
        consolidator_.trim();
        chunk_.trim();
    }
    void release() noexcept {
        consolidator_.trim(0);
        chunk_.trim(0);
    }
    size_t bytes() const { return consolidator_.bytes() + chunk_.bytes(); }

    // Sums rows with equal codes; `target` has their columns, and plain counts.
    void net(const std::vector<const int64_t*>& columns, const int64_t* weights, size_t n, Delta& target);

    uint64_t operations = 0;
    uint64_t scans = 0;        // of whole maps or, by a census, of all keys
    uint64_t loads_taken = 0;  // that had been done before
    // Called now and then while a run is under way; throws to stop it.
    std::function<void()> poll = [] {};

private:
    void scan(const ScanStep& step, Delta& target);
    void join(const JoinStep& step, Trigger& trigger);
    void project(const ProjectStep& step, const Delta& origin, Delta& target);
    void distinct(const DistinctStep& step, const Delta& origin, Delta& target);
    void exists(const ExistsStep& step, const Delta& origin, Delta& target);
    void filter(const FilterStep& step, const Delta& origin, Delta& target);
    void store(const StoreStep& step, const Input& input, UndoLog& log);
    void add(const AddStep& step, const Delta& origin, Delta* presence, UndoLog& log);
    void overlay(Trigger& trigger, Overlay& overlay);
    void watch(const WatchStep& step, const Delta& origin, UndoLog& log);
    bool rises(const Partition& partition, const int64_t* key, uint32_t tag, unsigned leaf);
    bool falls(const Partition& partition, const int64_t* key, uint32_t tag, unsigned first);

    static bool reads_nothing(const JoinStep& step, const Trigger& trigger);
    void look_up(const JoinStep& step, Trigger& trigger);
    bool load_sums(const LoadStep& step, const Input& input, size_t start, unsigned count);
    void extend(const JoinStep& step, Trigger& trigger);
    void extend_by_one(const JoinStep& step, Trigger& trigger);
    void emit_matches(const JoinStep& step, Trigger& trigger);
    unsigned find_groups(const JoinStep& step, const Delta& origin, size_t start, unsigned r, uint32_t* rows,
                         unsigned count);
    void propose(const JoinStep& step, Trigger& trigger, size_t row, const uint64_t* groups, const uint64_t* pending);
    void push(const JoinStep& step, Trigger& trigger, size_t row, unsigned read, uint32_t entry, bool is_pending);
    void push_all(const JoinStep& step, Trigger& trigger, size_t row, unsigned read, const Members& members);
    void flush(const JoinStep& step, Trigger& trigger);
    void check(const JoinStep& step, Trigger& trigger, unsigned read);
    void check_overlay(const JoinStep& step, Trigger& trigger, unsigned read);
    void multiply(const Read& read, const Layout& layout, int64_t* payload, const int64_t* found);
    void emit(const JoinStep& step, Trigger& trigger);
    void poll_interrupt();

    static constexpr unsigned CHUNK = 1024;
    static constexpr uint8_t NOBODY = 255;

    // The candidates of a join, up to a chunk of them: which row of the origin each extends, and by which entry.
    struct Candidates {
        unsigned n = 0;
        uint32_t rows[CHUNK];
        uint32_t entries[CHUNK];
        uint8_t proposers[CHUNK];
        bool pending[CHUNK];
        unsigned alive = 0;
        uint32_t selected[CHUNK];
        Array<int64_t> values;
        Array<int64_t> payloads;
        bool plain = true;
    };

    class CandidateKey;

    Consolidator consolidator_;
    Candidates candidates_;
    RowGroups<CHUNK> row_groups_;
    KeyBlock block_;
    Delta chunk_;
    Array<uint64_t> groups_;
    Array<int64_t> total_;
    std::chrono::steady_clock::time_point last_poll_{};
    unsigned breaths_ = 0;
};

}  // namespace ivme
