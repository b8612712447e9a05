#include "heap.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "errors.hpp"
#include "wide.hpp"

namespace ivme {

namespace {

// Compaction pays once so many places are free.
constexpr size_t MIN_FREE = 1024;
constexpr size_t MANY = 32;
constexpr int64_t SMALL = int64_t{1} << 31;

}  // namespace

Heap::Heap(unsigned columns, std::vector<unsigned> key, const Seed& seed, bool is_kept)
    : columns_(columns),
      loose_(columns),
      entered_(columns),
      key_(std::move(key)),
      is_kept_(is_kept),
      keyed_(!key_.empty()),
      indexed_(keyed_),
      seed_(seed) {
    if (std::any_of(key_.begin(), key_.end(), [&](unsigned column) { return column >= columns; })) {
        throw std::invalid_argument("a key has columns that the rows have not");
    }
    if (keyed_ && !is_kept) throw std::invalid_argument("rows that are not kept cannot have a key");
    if (!keyed_) {
        key_.resize(columns);
        std::iota(key_.begin(), key_.end(), 0u);
    }
}

void Heap::add(const int64_t* const* columns, const int64_t* weights, size_t n, bool may_be_negative) {
    changes_ += n;
    if (!is_kept_) return pass(columns, weights, n);
    int64_t least = 0, most = 0;
    for (size_t row = 0; row < n; ++row) {
        least = std::min(least, weights[row]);
        most = std::max(most, weights[row]);
    }
    bool removes = least < 0, adds = most > 0;
    may_be_negative = may_be_negative && !keyed_;
    if (removes) make_index();
    if (!indexed_ && !weigh(weights, n, most)) make_index();
    if (!indexed_ || (keyed_ && !removes)) return append_all(columns, weights, n);
    if (removes && adds && !may_be_negative && n > 1) return net(columns, weights, n);
    each(columns, weights, n, -1, [&](size_t row, uint32_t hashed) {
        if (may_be_negative) return insert(columns, row, hashed, weights[row], true);
        remove(columns, row, hashed, weights[row]);
    });
    each(columns, weights, n, 1,
         [&](size_t row, uint32_t hashed) { insert(columns, row, hashed, weights[row], may_be_negative); });
}

void Heap::pass(const int64_t* const* columns, const int64_t* weights, size_t n) {
    for (size_t row = 0; row < n; ++row) {
        if (weights[row] < 0) refuse("present", columns, row, true);
    }
    live_ += n;
    ++version;
}

// Whether the weights of all rows fit 64 bits together with these, so that no row's can exceed them.
bool Heap::weigh(const int64_t* weights, size_t n, int64_t most) {
    int64_t mass = 0;
    if (most < SMALL && n < static_cast<size_t>(SMALL)) {
        mass = std::accumulate(weights, weights + n, mass);
    } else {
        for (size_t row = 0; row < n; ++row) {
            if (add_overflows(mass, weights[row], &mass)) return false;
        }
    }
    return !add_overflows(mass_, mass, &mass_);
}

// The sum for each row; what goes then makes place for what comes, as a row may be replaced by one of the same key.
void Heap::net(const int64_t* const* columns, const int64_t* weights, size_t n) {
    Heap sums(arity(), {}, seed_);
    sums.loose_ = loose_;
    sums.has_loose_ = has_loose_;
    sums.add(columns, weights, n, true);
    std::vector<Array<int64_t>> words(arity());
    std::vector<const int64_t*> netted;
    for (unsigned c = 0; c < arity(); ++c) {
        words[c].resize(sums.high());
        sums.columns_[c].copy(0, sums.high(), words[c].data());
        netted.push_back(words[c].data());
    }
    Array<int64_t> weighed;
    weighed.resize(sums.high());
    sums.weights_.copy(0, sums.high(), weighed.data());
    const int64_t* left = weighed.data();
    each(netted.data(), left, sums.high(), -1,
         [&](size_t row, uint32_t hashed) { remove(netted.data(), row, hashed, left[row]); });
    each(netted.data(), left, sums.high(), 1,
         [&](size_t row, uint32_t hashed) { insert(netted.data(), row, hashed, left[row], false); });
}

// Visits the rows whose weights have this sign, with their hashes, and fetches what they will touch before.
template <class Work>
void Heap::each(const int64_t* const* columns, const int64_t* weights, size_t n, int sign, Work work) {
    uint32_t tags[MANY];
    for (size_t start = 0; start < n; start += MANY) {
        size_t count = std::min(MANY, n - start);
        auto is_wanted = [&](size_t i) { return sign < 0 ? weights[start + i] < 0 : weights[start + i] > 0; };
        for (size_t i = 0; i < count; ++i) {
            if (!is_wanted(i)) continue;
            tags[i] = tag(given(columns, start + i));
            index_.prefetch(tags[i]);
        }
        for (size_t i = 0; i < count; ++i) {
            if (!is_wanted(i)) continue;
            uint32_t id = index_.guess(tags[i]);
            prefetch(id == NIL && ordered_ ? static_cast<uint32_t>(near(given(columns, start + i))) : id);
        }
        for (size_t i = 0; i < count; ++i) {
            if (is_wanted(i)) work(start + i, tags[i]);
        }
    }
}

// Fetches a row that is about to be compared.
void Heap::prefetch(uint32_t id) const {
    if (id == NIL) return;
    for (const auto& column : columns_) column.prefetch(id);
    weights_.prefetch(id);
}

bool Heap::let_be_loose(unsigned column, Dictionary* dictionary) {
    if (loose_[column] == dictionary) return true;
    if (loose_[column] || (keyed_ ? is_of_index(column) : indexed_)) return false;
    loose_[column] = dictionary;
    entered_[column] = high();
    has_loose_ = true;
    return true;
}

// Of rows that are gone, too, as they may come back if a change is undone.
void Heap::enter(unsigned column, size_t first, size_t end) {
    Dictionary* dictionary = loose_[column];
    end = std::min(end, high());
    if (!dictionary || end <= entered_[column]) return;
    NarrowColumn& codes = columns_[column];
    for (size_t id = std::max(first, entered_[column]); id < end; ++id) {
        if (!dictionary->is_loose(codes[id])) continue;
        int64_t code = dictionary->enter(codes[id]);
        codes.prepare(&code, 1);
        codes.set(id, code);
    }
    if (first <= entered_[column]) entered_[column] = end;
}

int64_t Heap::get(const int64_t* row) {
    make_index();
    auto word = [&](unsigned i) { return row[key_[i]]; };
    uint32_t id = find(word, tag(word));
    for (unsigned c = 0; id != NIL && c < arity(); ++c) {
        if (!is_same(c, columns_[c][id], row[c])) id = NIL;
    }
    return id == NIL ? 0 : weights_[id];
}

void Heap::make_index() {
    if (indexed_) return;
    IdTable fresh;
    fresh.reserve(live_);
    reweighed_.reserve(reweighed_.size() + 2 * (weights_.size() - base_));
    index_ = std::move(fresh);
    for (uint32_t id = 0; id < weights_.size(); ++id) {
        if (!weights_[id]) continue;
        uint32_t hashed = tag(stored(id)), known = find(stored(id), hashed);
        if (known == NIL) {
            index_.insert(hashed, id);
            continue;
        }
        // A row that came since the commit joins an older one as a change of that; two older ones become one for good.
        if (known < base_ && id >= base_) {
            reweighed_.push(known);
            reweighed_.push(weights_[known]);
        }
        int64_t total;
        if (add_overflows(weights_[known], weights_[id], &total)) throw Overflow();
        weights_.prepare(&total, 1);
        weights_.set(known, total);
        weights_.set(id, 0);
        --live_;
        if (id < base_) --base_live_;
    }
    indexed_ = true;
}

void Heap::cut(size_t end) noexcept {
    for (auto& column : columns_) column.cut(end);
    for (size_t& entered : entered_) entered = std::min(entered, end);
    weights_.cut(end);
}

void Heap::insert(const int64_t* const* columns, size_t row, uint32_t hashed, int64_t weight, bool may_be_negative) {
    uint32_t id = find(given(columns, row), hashed);
    if (keyed_ && (id != NIL || weight > 1)) refuse("unique", columns, row, false);
    if (id == NIL) {
        size_t in_order = rows_in_order(columns, row, &weight, 1);
        if (!in_order) index_.reserve_one();
        append(columns, row, weight);
        ordered_ += in_order;
        if (!in_order) index_.insert(hashed, static_cast<uint32_t>(weights_.size() - 1));
        return;
    }
    int64_t total;
    if (add_overflows(weights_[id], weight, &total)) throw Overflow();
    if (total < 0 && !may_be_negative) refuse("present", columns, row, true);
    reweigh(id, hashed, total);
}

void Heap::remove(const int64_t* const* columns, size_t row, uint32_t hashed, int64_t weight) {
    uint32_t id = find(given(columns, row), hashed);
    if (id == NIL || !is_row(id, columns, row) || weights_[id] < -weight) refuse("present", columns, row, true);
    reweigh(id, hashed, weights_[id] + weight);
}

void Heap::reweigh(uint32_t id, uint32_t hashed, int64_t weight) {
    weights_.prepare(&weight, 1);
    if (id < base_) {
        reweighed_.reserve(reweighed_.size() + 2);
        reweighed_.push(id);
        reweighed_.push(weights_[id]);
    }
    weights_.set(id, weight);
    ++version;
    if (weight) return;
    if (id >= ordered_) index_.erase(hashed, id);
    --live_;
}

void Heap::commit() noexcept {
    settle();
    if (!is_kept_) return;
    size_t free = weights_.size() - live_;
    if (free > MIN_FREE && free > live_) compact();
}

void Heap::settle() noexcept {
    base_ = weights_.size();
    base_live_ = live_;
    base_mass_ = mass_;
    reweighed_.trim(size_t{1} << 16);
}

void Heap::roll_back() noexcept {
    for (size_t id = std::max(base_, ordered_); indexed_ && id < weights_.size(); ++id) {
        if (weights_[id]) index_.erase(tag(stored(static_cast<uint32_t>(id))), static_cast<uint32_t>(id));
    }
    cut(base_);
    ordered_ = std::min(ordered_, base_);
    for (size_t i = reweighed_.size(); i; i -= 2) {
        auto id = static_cast<uint32_t>(reweighed_[i - 2]);
        if (!weights_[id] && id >= ordered_) index_.insert(tag(stored(id)), id);
        weights_.set(id, reweighed_[i - 1]);
    }
    live_ = base_live_;
    mass_ = base_mass_;
    ++version;
    settle();
}

void Heap::clear() noexcept {
    for (auto& column : columns_) column = NarrowColumn();
    std::fill(entered_.begin(), entered_.end(), 0);
    weights_ = NarrowColumn(NarrowColumn::FromZero());
    index_ = IdTable();
    ordered_ = 0;
    indexed_ = keyed_;
    live_ = 0;
    mass_ = 0;
    ++version;
    ++moves_;
    settle();
}

// Moves the rows together, in their order.
void Heap::compact() noexcept {
    uint32_t to = 0, tags[MANY];
    auto high = static_cast<uint32_t>(weights_.size());
    size_t kept = ordered_ < high ? 0 : NIL;  // of those in order; all that there are, if all are
    for (uint32_t start = 0; start < high; start += MANY) {
        uint32_t end = std::min<uint32_t>(high, start + MANY);
        auto is_hashed = [&](uint32_t id) { return indexed_ && id >= ordered_; };
        for (uint32_t id = start; id < end; ++id) {
            if (!weights_[id] || !is_hashed(id)) continue;
            tags[id - start] = tag(stored(id));
            index_.prefetch(tags[id - start]);
        }
        for (uint32_t id = start; id < end; ++id) {
            if (id == ordered_) kept = to;
            if (!weights_[id]) continue;
            if (to != id) {
                if (is_hashed(id)) index_.renumber(tags[id - start], id, to);
                for (auto& column : columns_) column.move(id, to);
                weights_.move(id, to);
            }
            ++to;
        }
    }
    for (size_t& entered : entered_) entered = entered < high ? 0 : to;
    ordered_ = std::min<size_t>(kept, to);
    cut(to);
    shrink();
    ++version;
    ++moves_;
    settle();
}

// Gives back the memory of rows that are gone; without memory to copy the others to, it stays.
void Heap::shrink() noexcept {
    try {
        for (auto& column : columns_) column.fit();
        weights_.fit();
        if (!indexed_ || index_.capacity() < 4 * (index_.size() + 1)) return;
        IdTable index;
        index.reserve(index_.size());
        for (auto id = static_cast<uint32_t>(ordered_); id < weights_.size(); ++id) index.insert(tag(stored(id)), id);
        index_ = std::move(index);
    } catch (const std::bad_alloc&) {}
}

bool Heap::is_row(uint32_t id, const int64_t* const* columns, size_t row) const {
    for (unsigned c = 0; c < arity(); ++c) {
        if (!is_same(c, columns_[c][id], columns[c][row])) return false;
    }
    return true;
}

void Heap::refuse(const char* check, const int64_t* const* columns, size_t row, bool whole) const {
    std::vector<int64_t> codes;
    for (unsigned c = 0; whole && c < arity(); ++c) codes.push_back(columns[c][row]);
    for (size_t i = 0; !whole && i < key_.size(); ++i) codes.push_back(columns[key_[i]][row]);
    throw BrokenCheck(check, std::move(codes));
}

void Heap::mark_codes(CodeMarks& marks) {
    bool has_codes = false;
    for (const auto& column : columns_) {
        if (!marks.may_mark(column.least(), column.most())) continue;
        bool are_all = live_ == weights_.size();
        column.each([&](size_t id, int64_t code) {
            if (are_all || weights_[id]) has_codes |= marks.mark(code);
        });
    }
    marked_size_ = has_codes ? live_ : 0;
}

size_t Heap::bytes() const {
    size_t total = weights_.bytes() + index_.bytes() + reweighed_.bytes();
    for (const auto& column : columns_) total += column.bytes();
    return total;
}

uint64_t Heap::digest(uint64_t salt) const {
    Seed seed(salt);
    uint64_t total = 0;
    for (size_t id = 0; id < weights_.size(); ++id) {
        if (!weights_[id]) continue;
        total += seed.hash_of(arity(), [&](unsigned c) { return content(c, columns_[c][id]); }) *
                 static_cast<uint64_t>(weights_[id]);
    }
    return total;
}

void Heap::verify() const {
    uint64_t live = 0, hashed = 0;
    for (uint32_t id = 0; id < weights_.size(); ++id) {
        if (id && id < ordered_ && !is_less(id - 1, stored(id))) throw std::logic_error("a row is not in order");
        if (!weights_[id]) continue;
        ++live;
        hashed += id >= ordered_;
        if (indexed_ && find(stored(id), tag(stored(id))) != id)
            throw std::logic_error("a row is not where its index says");
    }
    if (is_kept_ && live != live_) throw std::logic_error("a table does not have as many rows as it says");
    if (indexed_ && index_.size() != hashed) throw std::logic_error("an index has rows that are not there");
}

}  // namespace ivme
