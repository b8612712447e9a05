// A map from tuples of codes to payloads, with its indexes (source 003, section 2.7).
//
// An entry is one record: its codes, then its payload; a record whose count is zero is free. Entry ids are 32 bits.
// Entries are hashed by all their columns, or by those of a key that a table has: then the map itself is the index by
// that key. That a key has several entries, as within a batch it may, only makes the look-up of one of them longer.
// An index whose key and values are all columns groups the entries; one on fewer columns is a projection: a map of
// its own whose count is the number of supporting entries.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "array.hpp"
#include "codes.hpp"
#include "hash.hpp"
#include "index.hpp"
#include "payload.hpp"
#include "portable.hpp"
#include "sorted.hpp"

namespace ivme {

class Map;

struct Projection {
    std::vector<unsigned> key, values;
    std::unique_ptr<Map> map;
};

class Map {
public:
    static constexpr unsigned MAX_ARITY = 64;
    static constexpr size_t MANY_ROWS = 256;

    // With `key`, columns in their order, entries are hashed by these.
    Map(unsigned arity, Layout layout, const Seed& seed, const std::vector<unsigned>& key = {});
    Map(const Map&) = delete;
    Map& operator=(const Map&) = delete;
    ~Map() = default;

    unsigned arity() const { return arity_; }
    const Layout& layout() const { return layout_; }
    const Seed& seed() const { return seed_; }
    uint64_t size() const { return table_.size(); }
    uint32_t high() const { return static_cast<uint32_t>(records_.size() / stride_); }

    const int64_t* row(uint32_t id) const { return records_.data() + static_cast<size_t>(id) * stride_; }
    const int64_t* payload(uint32_t id) const { return row(id) + arity_; }
    bool alive(uint32_t id) const { return payload(id)[0] != 0; }

    // The columns by which entries are hashed, if not by all.
    std::vector<unsigned> key() const { return by_key_ ? by_key_->key() : std::vector<unsigned>(); }
    bool is_keyed() const { return by_key_ != nullptr; }

    uint32_t tag(const int64_t* row) const { return by_key_ ? by_key_->row_tag(row) : seed_.tag(row, arity_); }
    void prefetch(uint32_t tag) const { table_.prefetch(tag); }
    void prefetch_record(uint32_t tag) const {
        uint32_t id = table_.guess(tag);
        if (id != NIL) prefetch_row(id);
    }
    // A record may lie in two cache lines.
    void prefetch_row(uint32_t id) const {
        prefetch_line(row(id));
        prefetch_line(row(id) + stride_ - 1);
    }

    uint32_t find(const int64_t* key, uint32_t tag) const {
        return table_.find(tag, [&](uint32_t id) { return same(row(id), key, arity_); });
    }
    uint32_t find(const int64_t* key) const { return find(key, tag(key)); }

    // An entry with the given values in the columns by which entries are hashed.
    uint32_t find_keyed(const int64_t* values, uint32_t tag) const {
        const std::vector<unsigned>& columns = by_key_->key();
        return table_.find(tag, [&](uint32_t id) {
            for (size_t i = 0; i < columns.size(); ++i) {
                if (row(id)[columns[i]] != values[i]) return false;
            }
            return true;
        });
    }

    // Fetches what adding these rows will touch, in the table, the records and the indexes, one step for all at a
    // time, so that the misses of a block overlap.
    void warm(const int64_t* keys, const uint32_t* tags, const int64_t* changes, unsigned n) const;

    // Many rows are about to be added: the table of a map that has few entries grows once, not with each of them. Those
    // that are there already need no room, so that others get a quarter more at most.
    void make_room(size_t rows) {
        if (rows <= MANY_ROWS) return;
        table_.reserve(table_.size() + std::min<size_t>(rows, table_.size() < rows / 4 ? rows : table_.size() / 4));
    }

    // Adds a payload and writes the old one, all zero if there was none. Throws before it has changed anything.
    void add(const int64_t* key, uint32_t tag, const int64_t* change, int64_t* old);

    // Makes the entry have this payload again; no count, no entry. Cannot fail while `undoing`.
    void restore(const int64_t* key, const int64_t* old);

    void add_index(const std::vector<unsigned>& key, const std::vector<unsigned>& values);
    void add_sorted(std::vector<unsigned> key, unsigned value, const Dictionary* order, bool counted);
    const GroupIndex* index(const std::vector<unsigned>& key) const;
    const Projection* projection(const std::vector<unsigned>& key, const std::vector<unsigned>& values) const;
    // One that is counted, if that is wanted.
    const SortedIndex* sorted(const std::vector<unsigned>& key, unsigned value, bool counted) const;
    const std::vector<std::unique_ptr<SortedIndex>>& all_sorted() const { return sorted_; }

    // All entries as they are stored, one behind the other: codes, then payload. With floats, the long ones come
    // behind, by their places in what comes, and the number of words before them last.
    void dump(Array<int64_t>& records) const;

    // Fills a map without entries with what `dump` gave, in one go: nothing grows, nothing is undone. Refuses an entry
    // that is there twice or has no count; on any error there is no entry.
    void load(const int64_t* records, size_t words);

    // From here on `misfits` knows the entries whose sums exceed these limits, at first those of all entries.
    void limit(const std::vector<Limit>& limits);

    // Whether sums of this batch have exceeded their limits.
    bool has_suspects() const { return suspects_.size() != 0; }

    // Visits the entries of this batch whose sums exceed their limits now.
    template <class Visit>
    void misfits(Visit visit) const {
        for (size_t i = 0; i < suspects_.size(); ++i) {
            if (alive(suspects_[i]) && !fits(suspects_[i])) visit(row(suspects_[i]));
        }
    }

    // Ends a batch: what it freed may be reused, and a map that lost most of its entries gives memory back.
    void commit();
    void undoing(bool value);
    void clear();

    // Hands its entries over as they are, with their indexes, and goes on with a copy of them, or without entries.
    // Pointers to entries are then into what was handed over. Changes nothing if it fails.
    std::unique_ptr<Map> hand_over(bool keeps_copy);
    // In a map that was handed over, what is in the place of this one, of its projection, or of its index; null if
    // that is not of this map.
    const Map* twin(const Map* map, const Map& other) const;
    const GroupIndex* twin(const GroupIndex* index, const Map& other) const;
    const SortedIndex* twin(const SortedIndex* index, const Map& other) const;

    // Marks the long floats that entries have.
    void mark_floats() const noexcept;

    // Marks the codes of dictionaries that entries have. Indexes and projections have no others.
    void mark_codes(CodeMarks& marks) { marked_size_ = mark_entries(marks) ? size() : 0; }
    // The same; whether there is any.
    bool mark_entries(CodeMarks& marks) const;
    // By how many entries it is smaller than when it was last found to have codes: so many may be held no more.
    uint64_t shrunk() const { return marked_size_ > size() ? marked_size_ - size() : 0; }

    size_t bytes() const;
    uint64_t digest(uint64_t salt) const;
    // Throws std::logic_error if an index does not say what the entries say.
    void verify() const;

    uint64_t version = 0;
    std::atomic<unsigned> users = 0;

private:
    uint32_t insert(const int64_t* key, uint32_t tag, const int64_t* payload);
    void erase(uint32_t id, uint32_t tag) noexcept;
    // An entry of the same key, if entries are hashed by one.
    uint32_t find_other(const int64_t* row, uint32_t tag) const;
    void enter_indexes(uint32_t id, uint32_t other);
    void leave_indexes(uint32_t id, size_t groups, size_t projections, size_t sorted) noexcept;
    void support(Projection& projection, const int64_t* row, int64_t change);
    // Tells counted indexes by how much the count of an entry that is there has changed.
    void recount(uint32_t id, int64_t change) noexcept {
        if (counted_ && change) recount_indexes(id, change);
    }
    void recount_indexes(uint32_t id, int64_t change) noexcept;
    // Notes an entry whose sums exceed their limits: within a batch they may, as the rest may bring them back.
    void suspect(uint32_t id) {
        if (!fits(id)) suspects_.push(id);
    }
    bool fits(uint32_t id) const {
        const int64_t* sums = payload(id);
        return std::all_of(limits_.begin(), limits_.end(), [&](const SumLimit& limit) { return limit.holds(sums); });
    }
    std::unique_ptr<Map> copy(bool full) const;
    void swap_entries(Map& other) noexcept;
    void compact();
    uint64_t hash_record(const Seed& seed, uint32_t id) const;
    void dump_floats(Array<int64_t>& records) const;
    size_t load_floats(const int64_t* records, size_t words);
    void load_entries();
    void load_indexes();
    void verify_keys() const;

    auto rows() const {
        return [this](uint32_t id) { return row(id); };
    }

    unsigned arity_;
    Layout layout_;
    unsigned stride_;
    Seed seed_;
    IdTable table_;
    Array<int64_t> records_;
    uint32_t free_ = NIL;
    uint64_t marked_size_ = 0;
    std::vector<SumLimit> limits_;
    Array<uint32_t> suspects_;            // entries that exceeded a limit since the last commit
    std::unique_ptr<GroupIndex> by_key_;  // if entries are hashed by a key
    std::vector<std::unique_ptr<GroupIndex>> indexes_;
    std::vector<Projection> projections_;
    std::vector<std::unique_ptr<SortedIndex>> sorted_;
    bool counted_ = false;  // whether one of them is
};

inline void GroupIndex::prefetch(uint32_t tag) const {
    if (hashed_) {
        hashed_->prefetch(tag);
    } else {
        groups_.prefetch(tag);
    }
}

inline void GroupIndex::prefetch_record(uint32_t tag) const {
    if (hashed_) {
        hashed_->prefetch_record(tag);
    } else {
        groups_.prefetch_record(tag);
    }
}

inline uint64_t GroupIndex::find(const int64_t* key, uint32_t tag) const {
    uint32_t group = groups_.find(key, tag);
    if (group != NIL || !hashed_) return group;
    uint32_t entry = hashed_->find_keyed(key, tag);
    return entry == NIL ? NIL : ALONE | entry;
}

}  // namespace ivme
