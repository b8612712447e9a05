#include "piece_rows.hpp"

#include <algorithm>

#include "payload_columns.hpp"
#include "portable.hpp"
#include "probe.hpp"

namespace ivme {

namespace {

// For each tuple, the group of a table that its columns say, or NIL.
Array<uint32_t> groups_of(const GroupTable& table, const Delta& delta, const std::vector<unsigned>& columns) {
    Array<uint32_t> found;
    found.resize(delta.n);
    KeyBlock block;
    KeyColumns key(delta, columns);
    probe_keys(
        table, block, delta.n, [&](size_t row, int64_t* to) { key.gather(row, to); },
        [&](size_t row, const int64_t* k, uint32_t tag) { found[row] = table.find(k, tag); });
    return found;
}

// The tuples that have a group in every piece below.
Array<uint32_t> matching(size_t n, const std::vector<Array<uint32_t>>& below) {
    Array<uint32_t> kept;
    for (size_t row = 0; row < n; ++row) {
        bool is_whole = std::all_of(below.begin(), below.end(), [&](const auto& each) { return each[row] != NIL; });
        if (is_whole) kept.push(static_cast<uint32_t>(row));
    }
    return kept;
}

}  // namespace

PieceRows::PieceRows(const std::vector<Piece>& pieces, const std::vector<const Delta*>& deltas, const Layout& layout,
                     const Seed& seed, uint64_t& operations)
    : levels_(pieces.size()), requests_(count_of(pieces[0].key), seed), layout_(layout), places_(pieces.size()) {
    std::vector<GroupTable> tables;
    for (const Piece& piece : pieces) tables.emplace_back(count_of(piece.key), seed);
    for (size_t number = pieces.size(); number-- > 0;) {
        std::vector<Array<uint32_t>> below;
        for (size_t child = number + 1; child < pieces.size(); ++child) {
            if (pieces[child].parent != static_cast<int>(number)) continue;
            levels_[child].child = count_of(below);
            below.push_back(groups_of(tables[child], *deltas[number], pieces[child].above));
        }
        take(levels_[number], pieces[number], *deltas[number], tables[number], std::move(below));
        operations += deltas[number]->n;
    }
    requests_ = std::move(tables[0]);
}

// Copies the tuples that match, group by group.
void PieceRows::take(Level& level, const Piece& piece, const Delta& delta, GroupTable& groups,
                     std::vector<Array<uint32_t>> below) {
    level.parent = piece.parent;
    level.outputs = piece.outputs;
    level.plain = delta.layout.plain();
    level.words = delta.layout.words;
    Array<uint32_t> kept = matching(delta.n, below), of, order;
    of.resize(kept.size());
    KeyBlock block;
    KeyColumns key(delta, piece.key);
    probe_keys(
        groups, block, kept.size(), [&](size_t i, int64_t* to) { key.gather(kept[i], to); },
        [&](size_t i, const int64_t* k, uint32_t tag) {
            uint32_t group = groups.find(k, tag);
            of[i] = group == NIL ? groups.insert(k, tag, 0) : group;
        });
    level.starts.zeroed(groups.high() + 1);
    for (size_t i = 0; i < kept.size(); ++i) ++level.starts[of[i] + 1];
    for (size_t group = 1; group < level.starts.size(); ++group) level.starts[group] += level.starts[group - 1];
    Array<uint32_t> next;
    next.resize(level.starts.size());
    std::copy_n(level.starts.data(), next.size(), next.data());
    order.resize(kept.size());
    for (size_t i = 0; i < kept.size(); ++i) order[next[of[i]]++] = kept[i];

    auto copy = [&]<class T>(const T* from, Array<T>& to) {
        to.resize(order.size());
        for (size_t i = 0; i < order.size(); ++i) to[i] = from[order[i]];
    };
    level.columns.resize(piece.columns.size());
    for (size_t c = 0; c < piece.columns.size(); ++c) copy(delta.columns[piece.columns[c]].data(), level.columns[c]);
    level.matches.resize(below.size());
    for (size_t child = 0; child < below.size(); ++child) copy(below[child].data(), level.matches[child]);
    level.payloads.resize(order.size() * level.words);
    for (size_t i = 0; i < order.size(); ++i) {
        std::copy_n(delta.payload(order[i]), level.words, level.payloads.data() + i * level.words);
    }
}

void PieceRows::open(const int64_t* inputs) {
    uint32_t group = requests_.find(inputs, requests_.tag(inputs));
    more_ = group != NIL;
    if (!more_) return;
    levels_[0].at = levels_[0].starts[group];
    levels_[0].end = levels_[0].starts[group + 1];
    for (size_t number = 1; number < levels_.size(); ++number) enter(levels_[number]);
}

// Begins with the tuples that go with the parent's.
void PieceRows::enter(Level& level) {
    const Level& parent = levels_[static_cast<size_t>(level.parent)];
    uint32_t group = parent.matches[level.child][parent.at];
    level.at = level.starts[group];
    level.end = level.starts[group + 1];
}

// Goes on to the next row; false if there is none. Every tuple has matches, so that no level is without.
bool PieceRows::advance() {
    for (size_t number = levels_.size(); number-- > 0;) {
        if (++levels_[number].at == levels_[number].end) continue;
        for (size_t later = number + 1; later < levels_.size(); ++later) enter(levels_[later]);
        return true;
    }
    return false;
}

bool PieceRows::fill(Block& block, size_t limit, FloatPool& floats, uint64_t& operations) {
    for (size_t stop = block.n + limit; more_ && block.n < stop;) {
        size_t most = std::min(MANY, stop - block.n), n = 0;
        for (auto& places : places_) places.clear();
        for (; more_ && n < most; ++n) {
            for (size_t number = 0; number < levels_.size(); ++number) places_[number].push(levels_[number].at);
            more_ = advance();
        }
        emit(block, n, floats);
        operations += n * levels_.size();
    }
    return more_;
}

void PieceRows::emit(Block& block, size_t n, FloatPool& floats) {
    for (size_t number = 0; number < levels_.size(); ++number) {
        const Level& level = levels_[number];
        for (size_t c = 0; c < level.outputs.size(); ++c) {
            Array<int64_t>& to = block.columns[level.outputs[c]];
            to.resize(block.n + n);
            for (size_t i = 0; i < n; ++i) to[block.n + i] = level.columns[c][places_[number][i]];
        }
    }
    Layout layout(layout_.slots, &floats);
    block.payloads.resize((block.n + n) * layout.words);
    int64_t* to = block.payloads.data() + block.n * layout.words;
    counts_.resize(n);
    found_.resize(n);
    std::fill_n(counts_.data(), n, 1);
    bool fits = true, begun = false;
    for (size_t number = 0; number < levels_.size(); ++number) {
        const Level& level = levels_[number];
        for (size_t i = 0; level.plain && i < n; ++i) {
            fits &= !multiply_overflows(counts_[i], level.payloads[places_[number][i]], &counts_[i]);
        }
    }
    for (size_t number = 0; number < levels_.size() && fits; ++number) {
        const Level& level = levels_[number];
        if (level.plain) continue;
        for (size_t i = 0; i < n; ++i) found_[i] = level.payloads.data() + size_t{places_[number][i]} * level.words;
        fits = begun ? multiply_each(layout, to, found_.data(), n)
                     : scale_each(layout, to, counts_.data(), found_.data(), n);
        begun = true;
    }
    if (!fits) throw Overflow();
    if (!begun) std::copy_n(counts_.data(), n, to);
    block.n += n;
}

}  // namespace ivme
