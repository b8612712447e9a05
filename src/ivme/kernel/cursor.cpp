#include "cursor.hpp"

#include <algorithm>
#include <limits>

#include "payload_columns.hpp"
#include "portable.hpp"
#include "probe.hpp"

namespace ivme {

namespace {

// In what was handed over, the one in the place of `part`, if that is of the map that changed.
template <class Part>
void move_over(const Part*& part, const Map& changed, const Map& old) {
    const Part* twin = part ? changed.twin(part, old) : nullptr;
    if (twin) part = twin;
}

// In place of a product of counts that 64 bits do not hold: an error only if no other factor is missing. Times 0 it is
// 0, and times anything else itself.
constexpr int64_t TOO_LARGE = std::numeric_limits<int64_t>::min();

int64_t product_of(int64_t left, int64_t right) {
    int64_t product;
    return multiply_overflows(left, right, &product) ? TOO_LARGE : product;
}

}  // namespace

std::shared_ptr<Reader> Reader::over(const Map& changed, const Map& old) const {
    auto made = std::make_shared<Reader>(*this);
    auto move_all = [&](auto& parts) {
        for (auto& part : parts) {
            move_over(part.map, changed, old);
            if constexpr (requires { part.groups; }) move_over(part.groups, changed, old);
            if constexpr (requires { part.sorted; }) move_over(part.sorted, changed, old);
        }
    };
    move_all(made->guards);
    move_all(made->loops);
    move_all(made->factors);
    move_all(made->extremes);
    return made;
}

void Reader::find_carried(const std::vector<unsigned>& known_at) {
    std::vector<unsigned> last(variables, 0);  // the number of loops after which a variable is read last
    auto read = [&](const std::vector<unsigned>& wanted, size_t level) {
        for (unsigned variable : wanted) last[variable] = std::max(last[variable], static_cast<unsigned>(level));
    };
    for (size_t i = 0; i < loops.size(); ++i) read(loops[i].key, i);
    for (const Factor& factor : factors) {
        if (factor.loop < 0) read(factor.variables, factor.level);
    }
    for (const Extreme& extreme : extremes) {
        for (unsigned i = 0; i < extreme.variables.size(); ++i) {
            if (i != extreme.value) last[extreme.variables[i]] = count_of(loops);
        }
    }
    read(outputs, loops.size());
    carried.assign(loops.size(), {});
    for (unsigned level = 0; level < loops.size(); ++level) {
        for (unsigned variable = 0; variable < variables; ++variable) {
            if (known_at[variable] <= level && last[variable] > level) carried[level].push_back(variable);
        }
    }
}

Enumerator::Enumerator(const Reader& reader, FloatPool* floats, bool bare)
    : reader_(&reader),
      factors_(bare ? 0 : reader.factors.size()),
      layout_(reader.layout.slots, floats ? floats : &floats_),
      stages_(reader.loops.size() + 1) {
    for (size_t f = 0; f < factors_; ++f) sums_ += !reader.factors[f].map->layout().plain();
}

void Enumerator::open(std::vector<const int64_t*> inputs, size_t requests) {
    inputs_ = std::move(inputs);
    requests_ = requests;
    next_ = 0;
    capacity_ = FEW;
    for (Stage& stage : stages_) stage.n = stage.at = stage.within = 0;
}

void Enumerator::make_room(Stage& stage, unsigned rows) {
    if (stage.room >= rows) return;
    size_t variables = reader_->variables;
    size_t row = (variables + sums_ + 1) * sizeof(int64_t) + sizeof(Members) + 3 * sizeof(uint32_t);
    stage.memory.resize((variables + sums_) * sizeof(void*) + rows * row);
    char* free = stage.memory.data();
    auto take = [&]<class T>(T*& to, size_t count) {
        to = reinterpret_cast<T*>(free);
        free += count * sizeof(T);
    };
    take(stage.values, variables);
    take(stage.found, sums_);
    for (size_t v = 0; v < variables; ++v) take(stage.values[v], rows);
    for (size_t s = 0; s < sums_; ++s) take(stage.found[s], rows);
    take(stage.counts, rows);
    take(stage.members, rows);
    take(stage.requests, rows);
    take(stage.parents, rows);
    take(stage.entries, rows);
    stage.room = rows;
}

// Fills a stage whose rows have all been handed on; false if there are no more.
bool Enumerator::refill(unsigned level, unsigned most, uint64_t& operations) {
    Stage& stage = stages_[level];
    stage.n = stage.at = stage.within = 0;
    if (!level) {
        if (next_ == requests_) return false;
        take_requests(stage, most);
        for (const Guard& guard : reader_->guards) {
            operations += stage.n;
            pass_guard(guard, stage);
        }
    }
    while (level && !stage.n) {
        Stage& before = stages_[level - 1];
        if (before.at == before.n) {
            if (!refill(level - 1, capacity_, operations)) return false;
            look_up(level, operations);
        }
        make_room(stage, most);
        expand(level, most);
        if (!reader_->loops[level - 1].checks) operations += stage.n;
        read_rows(level);
    }
    resolve(level);
    return true;
}

void Enumerator::take_requests(Stage& stage, unsigned most) {
    unsigned count = static_cast<unsigned>(std::min<size_t>(most, requests_ - next_));
    make_room(stage, count);
    for (; stage.n < count; ++stage.n, ++next_) {
        for (unsigned v = 0; v < reader_->inputs; ++v) stage.values[v][stage.n] = inputs_[v][next_];
        stage.requests[stage.n] = static_cast<uint32_t>(next_);
        stage.counts[stage.n] = 1;
    }
}

// Keeps the requests that a guard has a match for.
void Enumerator::pass_guard(const Guard& guard, Stage& stage) {
    unsigned kept = 0;
    auto keep = [&](size_t row) {
        for (unsigned v = 0; v < reader_->inputs; ++v) stage.values[v][kept] = stage.values[v][row];
        stage.requests[kept++] = stage.requests[row];
    };
    auto key = [&](size_t row, int64_t* to) {
        for (unsigned variable : guard.key) *to++ = stage.values[variable][row];
    };
    KeyBlock block;
    auto find = [&](const auto& table) {
        probe_keys(table, block, stage.n, key, [&](size_t row, const int64_t* k, uint32_t tag) {
            if (table.find(k, tag) != NIL) keep(row);
        });
    };
    if (guard.groups) {
        find(*guard.groups);
    } else if (!guard.key.empty()) {
        find(*guard.map);
    } else if (guard.map->size()) {
        return;
    }
    stage.n = kept;
}

// Finds, for all rows of the stage before a loop, what the loop will yield for them.
void Enumerator::look_up(unsigned level, uint64_t& operations) {
    const Loop& loop = reader_->loops[level - 1];
    Stage& before = stages_[level - 1];
    if (loop.checks) operations += before.n;
    const int64_t* columns[Map::MAX_ARITY];
    for (size_t i = 0; i < loop.key.size(); ++i) columns[i] = before.values[loop.key[i]];
    auto key = [&](size_t row, int64_t* to) {
        for (size_t i = 0; i < loop.key.size(); ++i) to[i] = columns[i][row];
    };
    KeyBlock block;
    if (loop.checks) {
        probe_keys(*loop.map, block, before.n, key, [&](size_t row, const int64_t* k, uint32_t tag) {
            uint32_t entry = loop.map->find(k, tag);
            before.members[row] = {entry != NIL, entry, nullptr};
        });
    } else if (loop.groups) {
        const GroupIndex& groups = *loop.groups;
        probe_keys(groups, block, before.n, key, [&](size_t row, const int64_t* k, uint32_t tag) {
            Members members = groups.members(groups.find(k, tag));
            prefetch_line(members.n == 1 ? static_cast<const void*>(loop.map->row(members.one)) : members.many);
            before.members[row] = members;
        });
    }
}

// Extends rows of the stage before by entries of the loop, in order, as far as the block goes.
void Enumerator::expand(unsigned level, unsigned most) {
    const Loop& loop = reader_->loops[level - 1];
    Stage &before = stages_[level - 1], &stage = stages_[level];
    if (!loop.checks && !loop.groups) return expand_all(level, most);
    for (; before.at < before.n; ++before.at, before.within = 0) {
        const Members& members = before.members[before.at];
        const uint32_t* ids = members.begin() + before.within;
        uint32_t count = std::min(members.n - before.within, most - stage.n);
        for (uint32_t i = 0; i < count; ++i) {
            loop.map->prefetch_row(ids[i]);
            stage.parents[stage.n + i] = before.at;
            stage.entries[stage.n + i] = ids[i];
        }
        stage.n += count;
        before.within += count;
        if (before.within < members.n) return;
    }
}

// The same by all entries of the map.
void Enumerator::expand_all(unsigned level, unsigned most) {
    const Map& map = *reader_->loops[level - 1].map;
    Stage &before = stages_[level - 1], &stage = stages_[level];
    for (; before.at < before.n; ++before.at, before.within = 0) {
        for (; before.within < map.high(); ++before.within) {
            if (stage.n == most) return;
            if (!map.alive(before.within)) continue;
            stage.parents[stage.n] = before.at;
            stage.entries[stage.n++] = before.within;
        }
    }
}

// Writes the values of a block's rows: those that were known, and those that the loop yields.
void Enumerator::read_rows(unsigned level) {
    const Loop& loop = reader_->loops[level - 1];
    Stage &before = stages_[level - 1], &stage = stages_[level];
    auto carry = [&](const auto* from, auto* to) {
        for (unsigned i = 0; i < stage.n; ++i) to[i] = from[stage.parents[i]];
    };
    if (numbered_) carry(before.requests, stage.requests);
    for (unsigned variable : reader_->carried[level - 1]) carry(before.values[variable], stage.values[variable]);
    if (factors_) carry(before.counts, stage.counts);
    for (size_t f = 0, s = 0; s < sums_; ++f) {
        const Factor& factor = reader_->factors[f];
        if (factor.map->layout().plain()) continue;
        if (factor.level < level) carry(before.found[s], stage.found[s]);
        ++s;
    }
    for (auto [column, variable] : loop.yields) {
        int64_t* to = stage.values[variable];
        for (unsigned i = 0; i < stage.n; ++i) to[i] = loop.map->row(stage.entries[i])[column];
    }
}

// Finds the payloads of the factors that are known from this stage on.
void Enumerator::resolve(unsigned level) {
    Stage& stage = stages_[level];
    for (size_t f = 0, s = 0; f < factors_; ++f) {
        const Factor& factor = reader_->factors[f];
        bool plain = factor.map->layout().plain();
        const int64_t** found = plain ? nullptr : stage.found[s++];
        if (factor.level != level) continue;
        if (plain) {
            each_payload(factor, stage, [&](size_t row, const int64_t* payload) {
                stage.counts[row] = payload ? product_of(stage.counts[row], *payload) : 0;
            });
        } else {
            each_payload(factor, stage, [&](size_t row, const int64_t* payload) { found[row] = payload; });
        }
    }
}

// Visits the payload that a factor has for each row of a stage, null if it is not there.
template <class Visit>
void Enumerator::each_payload(const Factor& factor, const Stage& stage, Visit visit) {
    if (factor.loop >= 0) {
        for (unsigned i = 0; i < stage.n; ++i) visit(i, factor.map->payload(stage.entries[i]));
        return;
    }
    KeyBlock block;
    auto key = [&](size_t row, int64_t* to) {
        for (unsigned variable : factor.variables) *to++ = stage.values[variable][row];
    };
    probe_keys(*factor.map, block, stage.n, key, [&](size_t row, const int64_t* k, uint32_t tag) {
        uint32_t id = factor.map->find(k, tag);
        visit(row, id == NIL ? nullptr : factor.map->payload(id));
    });
}

// Takes the counts of some rows of the last stage; how many rows are there, and unless they all are, which.
unsigned Enumerator::take_counts(Block& block, unsigned first, unsigned end) {
    Stage& stage = stages_.back();
    int64_t* to = block.payloads.data() + block.n;
    if (!factors_) {
        std::fill_n(to, end - first, 1);
        return end - first;
    }
    bool whole = true;
    for (unsigned row = first; row < end; ++row) {
        int64_t count = stage.counts[row];
        whole &= (count != 0) & (count != TOO_LARGE);
        to[row - first] = count;
    }
    if (whole) return end - first;
    unsigned n = 0;
    for (unsigned row = first; row < end; ++row) {
        if (stage.counts[row] == TOO_LARGE) throw Overflow();
        to[n] = stage.counts[row];
        stage.parents[n] = row;
        n += stage.counts[row] != 0;
    }
    return n;
}

// The same for payloads with sums: the factors of rows that are there move together, and are multiplied as columns.
unsigned Enumerator::take_products(Block& block, unsigned first, unsigned end) {
    Stage& stage = stages_.back();
    unsigned n = 0;
    bool fits = true;
    for (unsigned row = first; row < end; ++row) {
        bool whole = stage.counts[row] != 0;
        for (size_t s = 0; s < sums_; ++s) whole &= stage.found[s][row] != nullptr;
        fits &= !whole || stage.counts[row] != TOO_LARGE;
        stage.parents[n] = row;
        stage.counts[first + n] = stage.counts[row];
        for (size_t s = 0; s < sums_; ++s) stage.found[s][first + n] = stage.found[s][row];
        n += whole;
    }
    int64_t* to = block.payloads.data() + block.n * layout_.words;
    fits = fits && scale_each(layout_, to, stage.counts + first, stage.found[0] + first, n);
    for (size_t s = 1; s < sums_ && fits; ++s) fits = multiply_each(layout_, to, stage.found[s] + first, n);
    if (!fits) throw Overflow();
    return n;
}

// The same, but they are not multiplied.
unsigned Enumerator::take_factors(Block& block, unsigned first, unsigned end) {
    Stage& stage = stages_.back();
    int64_t* counts = block.factors = stage.counts + first;
    const int64_t** found = stage.found[0] + first;
    block.rights = found;
    unsigned all = end - first, n = 0;
    bool are_whole = true;
    for (unsigned i = 0; i < all; ++i) are_whole &= (counts[i] != 0) & (counts[i] != TOO_LARGE) & (found[i] != nullptr);
    if (are_whole) return all;
    for (unsigned i = 0; i < all; ++i) {
        bool whole = counts[i] && found[i];
        if (whole && counts[i] == TOO_LARGE) throw Overflow();
        stage.parents[n] = first + i;
        counts[n] = counts[i];
        found[n] = found[i];
        n += whole;
    }
    return n;
}

// Appends whole rows of the last stage.
void Enumerator::emit(Block& block, size_t limit, uint64_t& operations) {
    Stage& stage = stages_.back();
    unsigned words = block.factored ? 0 : sums_ ? reader_->layout.words : 1;
    unsigned first = stage.at, all = static_cast<unsigned>(std::min<size_t>(limit, stage.n - first));
    block.payloads.resize((block.n + all) * words);
    unsigned n = block.factored ? take_factors(block, first, first + all)
                 : sums_        ? take_products(block, first, first + all)
                                : take_counts(block, first, first + all);
    operations += all * factors_;
    block.payloads.resize((block.n + n) * words);
    stage.at += all;
    const uint32_t* kept = stage.parents;  // of the last stage nobody asks for them any more
    auto append = [&](Array<int64_t>& to, const auto* from) {
        to.resize(block.n + n);
        if (n == all) {
            std::copy_n(from + first, n, to.data() + block.n);
        } else {
            for (unsigned i = 0; i < n; ++i) to[block.n + i] = from[kept[i]];
        }
    };
    for (size_t i = 0; i < reader_->outputs.size(); ++i) append(block.columns[i], stage.values[reader_->outputs[i]]);
    if (block.numbered) append(block.requests, stage.requests);
    for (size_t e = 0; e < reader_->extremes.size(); ++e) {
        operations += n;
        for (unsigned i = 0; i < n; ++i) {
            int64_t count = block.payloads[(block.n + i) * words];
            unsigned row = n == all ? first + i : kept[i];
            block.extremes[e].push(extreme(reader_->extremes[e], stage, row, count, block, operations));
        }
    }
    block.n += n;
}

bool Enumerator::fill(Block& block, size_t limit, uint64_t& operations) {
    floats_.clear();
    numbered_ = block.numbered;
    unsigned last = static_cast<unsigned>(stages_.size()) - 1;
    Stage& stage = stages_[last];
    for (size_t stop = block.n + limit; block.n < stop;) {
        if (stage.at == stage.n) {
            unsigned most = static_cast<unsigned>(std::min<size_t>(capacity_, stop - block.n));
            if (!refill(last, most, operations)) return false;
            capacity_ = std::min(MANY, capacity_ * 2);
        }
        emit(block, stop - block.n, operations);
        if (block.factored) return true;
    }
    return true;
}

}  // namespace ivme
