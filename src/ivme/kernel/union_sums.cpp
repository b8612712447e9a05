// Reading all rows of a union at once, for one request or for many.
#include <algorithm>

#include "payload_columns.hpp"
#include "probe.hpp"
#include "row_sums.hpp"
#include "union.hpp"

namespace ivme {

namespace {

// Puts rows in the order of their requests, those of one request in the order they had.
void sort_by_request(Block& block, size_t requests, unsigned words) {
    Array<uint32_t> places;
    places.zeroed(requests + 1);
    for (size_t i = 0; i < block.n; ++i) ++places[static_cast<size_t>(block.requests[i]) + 1];
    for (size_t i = 1; i <= requests; ++i) places[i] += places[i - 1];
    Array<uint32_t> to;
    to.resize(block.n);
    for (size_t i = 0; i < block.n; ++i) to[i] = places[static_cast<size_t>(block.requests[i])]++;
    auto move = [&](Array<int64_t>& words_of, unsigned width) {
        Array<int64_t> sorted;
        sorted.resize(block.n * width);
        for (size_t i = 0; i < block.n; ++i)
            std::copy_n(words_of.data() + i * width, width, sorted.data() + to[i] * width);
        words_of.swap(sorted);
    };
    for (auto& column : block.columns) move(column, 1);
    for (auto& column : block.extremes) move(column, 1);
    move(block.payloads, words);
    move(block.requests, 1);
}

// All rows of a delta but those with a count of zero; with several requests, its first column is the request.
void take_rows(Delta& delta, bool several, Block& block) {
    size_t kept = 0;
    unsigned words = delta.layout.words;
    for (size_t row = 0; row < delta.n; ++row) {
        if (!delta.payload(row)[0]) continue;
        if (kept != row) {
            for (auto& column : delta.columns) column[kept] = column[row];
            std::copy_n(delta.payload(row), words, delta.payload(kept));
        }
        ++kept;
    }
    block.n = kept;
    if (several) {
        block.requests = std::move(delta.columns[0]);
    } else if (block.numbered) {
        block.requests.zeroed(kept);
    }
    for (size_t c = 0; c < block.columns.size(); ++c) block.columns[c] = std::move(delta.columns[c + several]);
    block.payloads = std::move(delta.payloads);
}

}  // namespace

void UnionCursor::read_all(Block& block, uint64_t& operations) {
    if (plan_->disjoint) {
        read_disjoint(block, operations);
    } else if (!plan_->outputs) {
        read_points(block, operations);
    } else if (!plan_->pieces.empty()) {
        read_pieces(block, operations);
    } else if (plan_->answered) {
        read_answers(block, operations);
    } else {
        sum_up(block, operations);
    }
}

std::vector<Array<int64_t>> UnionCursor::gathered(const int64_t* requests, size_t n) const {
    std::vector<Array<int64_t>> columns(inputs_.size());
    for (size_t v = 0; v < columns.size(); ++v) {
        columns[v].resize(n);
        for (size_t i = 0; i < n; ++i) columns[v][i] = inputs_[v][requests ? requests[i] : 0];
    }
    return columns;
}

void UnionCursor::read_disjoint(Block& block, uint64_t& operations) {
    for (const Branch& branch : plan_->branches) {
        Enumerator rows(*branch.segments[0], &floats_);
        if (branch.guards.empty()) {
            rows.open(inputs_, requests_);
            rows.fill(block, ~size_t{0} - block.n, operations);
            continue;
        }
        Array<int64_t> numbers = passing(branch, operations);
        std::vector<Array<int64_t>> columns = gathered(numbers.data(), numbers.size());
        size_t start = block.n;
        rows.open(addresses(columns), numbers.size());
        rows.fill(block, ~size_t{0} - block.n, operations);
        for (size_t i = start; block.numbered && i < block.n; ++i) {
            block.requests[i] = numbers[static_cast<size_t>(block.requests[i])];
        }
    }
    if (block.numbered && plan_->branches.size() > 1) sort_by_request(block, requests_, plan_->layout.words);
}

void UnionCursor::find_distinct(Distinct& requests) const {
    auto gather = [&](size_t row, int64_t* key) {
        for (unsigned input : plan_->asked) *key++ = inputs_[input][row];
    };
    probe_keys(requests.known, requests.buffer, requests_, gather, [&](size_t, const int64_t* key, uint32_t tag) {
        uint32_t group = requests.known.find(key, tag);
        if (group == NIL) {
            group = requests.known.insert(key, tag, -1);
            for (size_t c = 0; c < requests.keys.size(); ++c) requests.keys[c].push(key[c]);
        }
        requests.groups.push(group);
    });
}

// A view without outputs has one row for a request, or none: it is probed for each distinct one.
void UnionCursor::read_points(Block& block, uint64_t& operations) {
    Distinct asked(static_cast<unsigned>(plan_->asked.size()), plan_->seed);
    find_distinct(asked);
    const Delta& sums = prober().sums(addresses(asked.keys), asked.known.high(), operations);
    KeyColumns columns(sums);
    probe_keys(
        asked.known, asked.buffer, sums.n, [&](size_t row, int64_t* key) { columns.gather(row, key); },
        [&](size_t row, const int64_t* key, uint32_t tag) {
            if (sums.payload(row)[0]) asked.known.word(asked.known.find(key, tag)) = static_cast<int64_t>(row);
        });
    for (size_t request = 0; request < requests_; ++request) {
        int64_t row = asked.known.word(asked.groups[request]);
        if (row < 0) continue;
        if (block.numbered) block.requests.push(static_cast<int64_t>(request));
        append(block.payloads, sums.payload(static_cast<size_t>(row)), plan_->layout.words);
        ++block.n;
    }
}

// The rows of each distinct request are found once, all at a time, and handed on for each request in turn.
void UnionCursor::read_answers(Block& block, uint64_t& operations) {
    Distinct asked(static_cast<unsigned>(plan_->asked.size()), plan_->seed);
    find_distinct(asked);
    const Delta& rows = prober().sums(addresses(asked.keys), asked.known.high(), operations);
    Array<uint32_t> starts, of, sorted;
    starts.zeroed(asked.known.high() + 1);
    of.resize(rows.n);
    auto gather = [&](size_t row, int64_t* key) {
        for (size_t c = 0; c < plan_->asked.size(); ++c) *key++ = rows.columns[c][row];
    };
    probe_keys(asked.known, asked.buffer, rows.n, gather, [&](size_t row, const int64_t* key, uint32_t tag) {
        of[row] = rows.payload(row)[0] ? asked.known.find(key, tag) : NIL;
        if (of[row] != NIL) ++starts[of[row] + 1];
    });
    for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    Array<uint32_t> next;
    next.resize(starts.size());
    std::copy_n(starts.data(), starts.size(), next.data());
    sorted.resize(starts[asked.known.high()]);
    for (size_t row = 0; row < rows.n; ++row) {
        if (of[row] != NIL) sorted[next[of[row]]++] = static_cast<uint32_t>(row);
    }
    for (size_t request = 0; request < requests_; ++request) {
        uint32_t group = asked.groups[request];
        for (uint32_t i = starts[group]; i < starts[group + 1]; ++i) {
            size_t row = sorted[i];
            for (size_t c = 0; c < block.columns.size(); ++c) {
                block.columns[c].push(rows.columns[plan_->asked.size() + c][row]);
            }
            append(block.payloads, rows.payload(row), plan_->layout.words);
            if (block.numbered) block.requests.push(static_cast<int64_t>(request));
            ++block.n;
        }
    }
}

void UnionCursor::sum_up(Block& block, uint64_t& operations) {
    Layout layout(plan_->layout.slots, &floats_);
    unsigned several = requests_ > 1;
    RowSums totals(plan_->outputs + several, layout, plan_->seed);
    for (const Branch& branch : plan_->branches) {
        Array<int64_t> numbers = passing(branch, operations);
        Delta from;
        from.shape(several, layout);
        from.extend(numbers.size());
        std::fill_n(from.payloads.data(), from.n * layout.words, 0);
        for (size_t i = 0; i < from.n; ++i) from.payload(i)[0] = 1;
        if (several) std::copy_n(numbers.data(), from.n, from.columns[0].data());
        Before before = Before::Nothing;
        for (size_t s = 0; s + 1 < branch.segments.size(); ++s) {
            const Reader& reader = *branch.segments[s];
            RowSums distinct(count_of(reader.outputs) + several, layout, plan_->seed);
            sum_segment(reader, from, before, distinct, operations);
            from = std::move(distinct.end());
            before = before == Before::Sums || !reader.layout.plain() ? Before::Sums : Before::Counts;
        }
        sum_segment(*branch.segments.back(), from, before, totals, operations);
    }
    take_rows(totals.end(), several, block);
    if (block.numbered && several) sort_by_request(block, requests_, layout.words);
}

// Adds what a segment finds behind the tuples of `from`, times their payloads; the first segment's are requests,
// with the payload 1. With several requests their first column is the request.
void UnionCursor::sum_segment(const Reader& reader, const Delta& from, Before before, RowSums& to,
                              uint64_t& operations) {
    bool several = requests_ > 1;
    std::vector<Array<int64_t>> given = gathered(several ? from.columns[0].data() : nullptr, from.n);
    std::vector<const int64_t*> opened = addresses(given);
    for (size_t c = several; c < from.columns.size(); ++c) opened.push_back(from.columns[c].data());
    Enumerator rows(reader, &floats_);
    rows.open(std::move(opened), from.n);
    Block found;
    found.shape(reader);
    found.numbered = several || before != Before::Nothing;
    found.factored = before != Before::Sums && rows.has_one_sum() && reader.layout == plan_->layout;
    for (bool more = true; more;) {
        found.n = 0;
        more = rows.fill(found, LARGEST, operations);
        const int64_t* payloads = nullptr;
        if (!found.factored) {
            payloads = multiplied(reader, from, before == Before::Nothing, found);
        } else if (before == Before::Counts) {
            scale_factors(from, found);
        }
        std::vector<const int64_t*> columns;
        if (several) {
            for (size_t i = 0; i < found.n; ++i)
                found.requests[i] = from.columns[0][static_cast<size_t>(found.requests[i])];
            columns.push_back(found.requests.data());
        }
        for (const auto& column : found.columns) columns.push_back(column.data());
        if (found.factored) {
            to.add(columns.data(), ProductPayloads{found.factors, found.rights}, found.n);
        } else {
            to.add(columns.data(), WholePayloads{payloads}, found.n);
        }
    }
}

// Multiplies the factors of what a segment found by the counts of the tuples before it.
void UnionCursor::scale_factors(const Delta& from, Block& found) {
    bool overflow = false;
    for (size_t i = 0; i < found.n; ++i) {
        int64_t count = from.payload(static_cast<size_t>(found.requests[i]))[0];
        overflow |= multiply_overflows(found.factors[i], count, &found.factors[i]);
    }
    if (overflow) throw Overflow();
}

// The payloads of what a segment found, times those of the tuples before it, in the union's own layout.
const int64_t* UnionCursor::multiplied(const Reader& reader, const Delta& from, bool first, const Block& found) {
    if (first && reader.layout == plan_->layout) return found.payloads.data();
    const Layout& layout = from.layout;
    products_.resize(found.n * layout.words);
    factors_.resize(found.n);
    auto before = [&](size_t i) { return from.payload(first ? 0 : static_cast<size_t>(found.requests[i])); };
    bool fits;
    if (reader.layout.plain()) {
        for (size_t i = 0; i < found.n; ++i) factors_[i] = before(i);
        fits = scale_each(layout, products_.data(), found.payloads.data(), factors_.data(), found.n);
    } else {
        for (size_t i = 0; i < found.n; ++i) {
            std::copy_n(before(i), layout.words, products_.data() + i * layout.words);
            factors_[i] = found.payloads.data() + i * layout.words;
        }
        fits = multiply_each(layout, products_.data(), factors_.data(), found.n);
    }
    if (!fits) throw Overflow();
    return products_.data();
}

}  // namespace ivme
