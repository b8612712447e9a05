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
#include "uses.hpp"

namespace ivme {

struct Loop {
    const Map* map;
    const GroupIndex* groups = nullptr;  // null with new variables: every entry matches
    std::vector<unsigned> key;           // variables, in the order of the group's key, or of the map's columns
    std::vector<std::pair<unsigned, unsigned>> yields;  // (column of the map, variable)
    bool checks = false;
};

// A request whose inputs have no match here has no rows.
struct Guard {
    const Map* map;
    const GroupIndex* groups;   // null: the key is a whole entry, or there is none and any entry will do
    std::vector<unsigned> key;  // inputs
};

struct Factor {
    const Map* map;
    std::vector<unsigned> variables;
    unsigned level = 0;  // the number of loops after which its variables are known
    int loop = -1;       // the loop whose entry it is
};

struct Extreme {
    // Values are all of a group; Continuous and Discrete the two, or the one, that a percentile is made of.
    enum class Function : uint8_t { Min, Max, CountDistinct, Values, Continuous, Discrete } function;
    const Map* map;
    const SortedIndex* sorted = nullptr;
    const GroupIndex* groups = nullptr;
    unsigned value = 0;
    std::vector<unsigned> variables;  // of the map's columns; that of `value` is any
    double fraction = 0;              // of a percentile
    bool descending = false;

    bool listed() const { return function >= Function::Values; }
};

struct Reader {
    unsigned inputs = 0;
    unsigned variables = 0;
    std::vector<unsigned> outputs;
    std::vector<Guard> guards;
    std::vector<Loop> loops;
    std::vector<Factor> factors;
    std::vector<Extreme> extremes;
    Uses<Map> maps;
    // The variables that are known after 0, 1, 2 loops and so on, and that what comes behind the next loop reads.
    std::vector<std::vector<unsigned>> carried;
    Layout layout;
    // Only grows, and differs whenever one of the maps has changed.
    uint64_t version() const {
        uint64_t total = 0;
        for (const Map* map : maps) total += map->version;
        return total;
    }
    // The same over what a map was before it changed.
    std::shared_ptr<Reader> over(const Map& changed, const Map& old) const;
    // Finds out what is carried, when all the rest is set; `known_at` has the number of loops that know a variable.
    void find_carried(const std::vector<unsigned>& known_at);
};

struct Block {
    std::vector<Array<int64_t>> columns;
    Array<int64_t> payloads;
    // If `factored`, in place of payloads: what each of them is the product of, a count and a payload of a map. They
    // are the enumerator's, which fills such a block anew each time.
    int64_t* factors = nullptr;
    const int64_t* const* rights = nullptr;
    bool factored = false;
    std::vector<Array<int64_t>> extremes;
    // For each extreme that is values of a group, which holds the place: how many, then each with its count. Those of
    // a percentile have the counts of all values up to them, so that it is at the same position among them.
    Array<int64_t> lists;
    bool listed = false;      // whether there are such extremes
    Array<int64_t> requests;  // for each row the number of its request, if `numbered`
    bool numbered = false;
    size_t n = 0;

    void shape(const Reader& reader) {
        columns.resize(reader.outputs.size());
        extremes.resize(reader.extremes.size());
    }
};

// The state of one enumeration; it is resumed block by block while the maps stay as they are.
//
// The loops run breadth-first over blocks of partial rows, so that the cache misses of a block overlap. Each loop has
// a stage that holds the block it has yielded last; a stage is filled again, from the one before it, when all its rows
// have been handed on. So rows come in the order of nested loops, and a stage holds no more than `capacity_` rows.
class Enumerator {
public:
    // Long floats of products are in `floats`, if given, which is its owner's to clear. With `bare` the factors are
    // left out, and all that the loops find has the count 1.
    explicit Enumerator(const Reader& reader, FloatPool* floats = nullptr, bool bare = false);
    Enumerator(const Enumerator&) = delete;
    Enumerator& operator=(const Enumerator&) = delete;
    ~Enumerator() = default;

    // The requests' inputs by column; they stay the caller's. NULL is a value like others, as in the groups of a
    // result: whoever asks for users, to whom NULL equals nothing, asks nothing with it.
    void open(std::vector<const int64_t*> inputs, size_t requests);
    // Goes on with a reader that is the same but for maps that were handed over.
    void go_on_with(const Reader& reader) { reader_ = &reader; }
    // Appends at most `limit` rows and returns whether there may be more.
    bool fill(Block& block, size_t limit, uint64_t& operations);
    // The layout of the payloads that it appends. What is long in them lasts as long as nothing is appended.
    const Layout& layout() const { return layout_; }
    // Whether all factors of a payload but one are counts, so that blocks may be `factored`.
    bool has_one_sum() const { return sums_ == 1; }

private:
    // Partial rows: the values of the variables and the payloads of the factors that are known so far, by column, in
    // one piece of memory, as many a request is over after a few rows.
    struct Stage {
        unsigned n = 0;
        unsigned at = 0;      // the next row to be handed on
        uint32_t within = 0;  // how many rows it has yielded for the loop behind it
        unsigned room = 0;
        int64_t** values = nullptr;        // by variable
        const int64_t*** found = nullptr;  // by factor with sums
        int64_t* counts = nullptr;         // the product of the others so far, 0 if one is not there
        Members* members = nullptr;        // for each row what the loop behind this stage will yield
        uint32_t* requests = nullptr;
        uint32_t* parents = nullptr;
        uint32_t* entries = nullptr;
        Array<char> memory;
    };

    bool refill(unsigned level, unsigned most, uint64_t& operations);
    void make_room(Stage& stage, unsigned rows);
    void take_requests(Stage& stage, unsigned most);
    void pass_guard(const Guard& guard, Stage& stage);
    void look_up(unsigned level, uint64_t& operations);
    void expand(unsigned level, unsigned most);
    void expand_all(unsigned level, unsigned most);
    void read_rows(unsigned level);
    void resolve(unsigned level);
    template <class Visit>
    void each_payload(const Factor& factor, const Stage& stage, Visit visit);
    void emit(Block& block, size_t limit, uint64_t& operations);
    unsigned take_counts(Block& block, unsigned first, unsigned end);
    unsigned take_products(Block& block, unsigned first, unsigned end);
    unsigned take_factors(Block& block, unsigned first, unsigned end);
    int64_t extreme(const Extreme& extreme, Stage& stage, unsigned row, int64_t count, Block& block,
                    uint64_t& operations) const;

    static constexpr unsigned FEW = 16, MANY = 1024;

    const Reader* reader_;
    size_t factors_;   // how many of the reader's factors are multiplied
    size_t sums_ = 0;  // how many of them have sums, and are not just counts
    bool numbered_ = false;
    FloatPool floats_;  // of products; those of the maps belong to their kernel
    Layout layout_;
    std::vector<Stage> stages_;  // the first holds requests, the others what the loops yield
    std::vector<const int64_t*> inputs_;
    size_t requests_ = 0;
    size_t next_ = 0;
    unsigned capacity_ = FEW;  // grows while reading goes on, so that few rows cost little
};

}  // namespace ivme
