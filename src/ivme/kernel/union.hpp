// How a view is read: the rows of one branch or of several, each row once, its payload the sum over all branches.
//
// A branch is a view tree over heavy and light parts (source 003, section 5.3). Its loops may run over bound variables,
// too, and then find a row several times; they are cut into segments, each of which begins with the distinct tuples of
// the one before. There are three ways to read:
//
// - Branches that have no row in common are read one after the other.
// - Otherwise rows are found block by block, those that came before are skipped, and what is left is probed in all
//   branches at once. By the time the k-th row is found, at most k times as many candidates have been visited as there
//   are contexts for a row: the sum of the sizes of overlapping sets is at most their number times the size of their
//   union. So the delay is that of union and hop view iterators, paid in advance rather than evenly.
// - A reader who wants all rows waits for no single one: what the loops find is summed by row, without a probe. The
//   candidates are the same, so the time for all rows is, too.
//
// A plan that is answered has no loops: the steps of its only branch take requests to all of their rows at once, or to
// pieces of them, off which rows are read one by one.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cursor.hpp"
#include "groups.hpp"
#include "machine.hpp"
#include "piece_rows.hpp"
#include "probe.hpp"

namespace ivme {

inline std::vector<const int64_t*> addresses(const std::vector<Array<int64_t>>& columns) {
    std::vector<const int64_t*> all;
    for (const auto& column : columns) all.push_back(column.data());
    return all;
}

inline void append(Array<int64_t>& to, const int64_t* from, size_t n) {
    size_t start = to.size();
    to.resize(start + n);
    std::copy_n(from, n, to.data() + start);
}

class Prober;
class RowSums;

struct Branch {
    // Opened with the inputs and then with what the segment before has kept; a factor belongs to the first segment that
    // knows its variables.
    std::vector<std::shared_ptr<Reader>> segments;
    // Readers of components that must have a row for a request to have any.
    std::vector<std::shared_ptr<Reader>> guards;
    // From a delta over `asked` inputs and the outputs to the payloads that this branch has for them; of a plan that is
    // answered, from the inputs to rows.
    std::unique_ptr<Trigger> probe;
};

struct Union {
    explicit Union(const Seed& random) : seed(random) {}
    Union(const Union&) = delete;
    Union& operator=(const Union&) = delete;
    ~Union();

    unsigned inputs = 0;
    unsigned outputs = 0;
    bool disjoint = true;         // no row is in two branches, or twice in one
    bool answered = false;        // the only branch has steps that find all rows of a request
    bool exact = false;           // whether sums of floats come as they are, not rounded
    std::vector<unsigned> asked;  // the inputs that a probe takes
    std::vector<Branch> branches;
    std::vector<Piece> pieces;  // of the rows of an answered plan, unless it finds these as a whole
    Layout layout;
    Seed seed;

    // Only grows, and differs whenever one of the maps has changed.
    uint64_t version() const;
    void shape(Block& block) const;
    // All maps that it reads, without its probes; each once.
    std::vector<const Map*> maps() const;
    // The same over what a map was before it changed, without probes: for branches that have no row in common.
    std::shared_ptr<Union> over(const Map& changed, const Map& old) const;

    // Probers that nobody uses: it takes longer to make one than to answer a small request.
    mutable std::mutex mutex;
    mutable std::vector<std::unique_ptr<Prober>> idle;
};

// Finds the payloads of given rows in all branches. It has registers of its own, as readers share a kernel's lock.
class Prober {
public:
    explicit Prober(const Union& plan);

    // The keys are distinct: rows, or requests of a plan that is answered. Payloads may have a count of zero; what is
    // long in them lasts until `forget`.
    const Delta& sums(const std::vector<const int64_t*>& keys, size_t n, uint64_t& operations);
    // The deltas of the pieces of an answered plan, for distinct requests.
    std::vector<const Delta*> pieces(const std::vector<const int64_t*>& keys, size_t n, uint64_t& operations);
    void forget() noexcept;

private:
    void take(const std::vector<const int64_t*>& keys, size_t n);

    FloatPool floats_;
    Machine machine_;
    std::vector<Trigger> probes_;
    std::vector<unsigned> columns_;
    std::vector<Input> inputs_{1};
    Array<int64_t> ones_;
    UndoLog log_;  // stays empty: a probe changes no map
    Consolidator consolidator_;
    Delta sums_;
};

// One reading of a union, for one request or for many. What is long in payloads lasts until the next call.
class UnionCursor {
public:
    explicit UnionCursor(const Union& plan) : plan_(&plan) {}
    UnionCursor(const UnionCursor&) = delete;
    UnionCursor& operator=(const UnionCursor&) = delete;
    ~UnionCursor();

    // The requests' inputs by column; they stay the caller's.
    void open(std::vector<const int64_t*> inputs, size_t requests);
    // Goes on with a plan that is the same but for maps that were handed over.
    void go_on_with(const Union& plan);
    // Finds the pieces of the rows of the only request: what follows reads no map.
    void find_pieces(uint64_t& operations);
    void mark_codes(CodeMarks& marks) const;
    // Appends at most `limit` rows of the only request and returns whether there may be more.
    bool fill(Block& block, size_t limit, uint64_t& operations);
    // Appends the rows of all requests, in the requests' order if the block is numbered.
    void read_all(Block& block, uint64_t& operations);

private:
    // A segment of the branch that is being read.
    struct Level {
        explicit Level(const Reader& reader, FloatPool& floats, const Seed& seed)
            : rows(reader, &floats, true), seen(static_cast<unsigned>(reader.outputs.size()), seed) {
            found.shape(reader);
        }
        Enumerator rows;
        Block found;
        GroupTable seen;
        std::vector<Array<int64_t>> given;  // the inputs and what the level before found, for each of its rows
        bool open = false;
    };

    bool fill_disjoint(Block& block, size_t limit, uint64_t& operations);
    bool fill_probed(Block& block, size_t limit, uint64_t& operations);
    bool fill_answered(Block& block, size_t limit, uint64_t& operations);
    bool next_branch(uint64_t& operations);
    void begin_levels(const Branch& branch);
    bool find(unsigned level, size_t most, uint64_t& operations);
    void keep_new(Block& found, GroupTable& seen);
    void append_probed(Block& block, const std::vector<const int64_t*>& outputs, size_t n, uint64_t& operations);

    Array<int64_t> passing(const Branch& branch, uint64_t& operations) const;
    void read_disjoint(Block& block, uint64_t& operations);
    // The distinct requests, by column, and for each request which of them it is.
    struct Distinct {
        explicit Distinct(unsigned width, const Seed& seed) : known(width, seed), keys(width) {}
        GroupTable known;
        std::vector<Array<int64_t>> keys;
        Array<uint32_t> groups;
        KeyBlock buffer;
    };

    void find_distinct(Distinct& requests) const;
    void read_points(Block& block, uint64_t& operations);
    void read_answers(Block& block, uint64_t& operations);
    void read_pieces(Block& block, uint64_t& operations);
    void sum_up(Block& block, uint64_t& operations);
    // What the payloads are made of that a segment's are multiplied by.
    enum class Before : uint8_t { Nothing, Counts, Sums };
    void sum_segment(const Reader& reader, const Delta& from, Before before, RowSums& to, uint64_t& operations);
    static void scale_factors(const Delta& from, Block& found);
    const int64_t* multiplied(const Reader& reader, const Delta& from, bool first, const Block& found);
    // The inputs of some requests, or n times of the only one.
    std::vector<Array<int64_t>> gathered(const int64_t* requests, size_t n) const;
    Prober& prober();
    void give_back() noexcept;

    static constexpr size_t SMALLEST = 8, LARGEST = 4096;

    const Union* plan_;
    FloatPool floats_;
    std::vector<const int64_t*> inputs_;
    size_t requests_ = 0;
    size_t next_ = 0;  // the branch after the one that is being read
    size_t block_ = SMALLEST;
    std::optional<Enumerator> rows_;
    std::vector<std::unique_ptr<Level>> levels_;
    std::optional<GroupTable> seen_;
    std::unique_ptr<Prober> prober_;
    Array<int64_t> products_;
    std::vector<const int64_t*> factors_;
    std::optional<Block> answers_;  // all rows of the only request, of which so many were taken
    size_t taken_ = 0;
    std::unique_ptr<PieceRows> pieces_;
};

}  // namespace ivme
