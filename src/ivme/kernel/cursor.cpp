#include "cursor.hpp"

#include <algorithm>
#include <cmath>

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

Enumerator::Enumerator(const Reader& reader, FloatPool* floats, bool bare)
    : reader_(&reader),
      factors_(bare ? 0 : reader.factors.size()),
      layout_(reader.layout.slots, floats ? floats : &floats_),
      stages_(reader.loops.size() + 1) {}

void Enumerator::open(std::vector<const int64_t*> inputs, size_t requests) {
    inputs_ = std::move(inputs);
    requests_ = requests;
    next_ = 0;
    capacity_ = FEW;
    for (Stage& stage : stages_) stage.n = stage.at = stage.within = 0;
}

void Enumerator::make_room(Stage& stage, unsigned rows) {
    if (stage.room >= rows) return;
    size_t variables = reader_->variables, factors = factors_;
    size_t row = (variables + factors) * sizeof(int64_t) + sizeof(Members) + 3 * sizeof(uint32_t);
    stage.memory.resize((variables + factors) * sizeof(void*) + rows * row);
    char* free = stage.memory.data();
    auto take = [&]<class T>(T*& to, size_t count) {
        to = reinterpret_cast<T*>(free);
        free += count * sizeof(T);
    };
    take(stage.values, variables);
    take(stage.found, factors);
    for (size_t v = 0; v < variables; ++v) take(stage.values[v], rows);
    for (size_t f = 0; f < factors; ++f) take(stage.found[f], rows);
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
        find(guard.groups->groups());
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
        const GroupTable& groups = loop.groups->groups();
        probe_keys(groups, block, before.n, key, [&](size_t row, const int64_t* k, uint32_t tag) {
            Members members = loop.groups->members(groups.find(k, tag));
            prefetch_line(members.n == 1 ? static_cast<const void*>(loop.map->row(members.one)) : members.many);
            before.members[row] = members;
        });
    }
}

// Extends rows of the stage before by entries of the loop, in order, as far as the block goes.
void Enumerator::expand(unsigned level, unsigned most) {
    const Loop& loop = reader_->loops[level - 1];
    Stage &before = stages_[level - 1], &stage = stages_[level];
    bool all = !loop.checks && !loop.groups;
    for (; before.at < before.n; ++before.at, before.within = 0) {
        const Members& members = before.members[before.at];
        uint32_t end = all ? loop.map->high() : members.n;
        const uint32_t* ids = all ? nullptr : members.begin();
        for (; before.within < end; ++before.within) {
            if (stage.n == most) return;
            uint32_t entry = all ? before.within : ids[before.within];
            if (all && !loop.map->alive(entry)) continue;
            prefetch_line(loop.map->row(entry));
            stage.parents[stage.n] = before.at;
            stage.entries[stage.n++] = entry;
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
    carry(before.requests, stage.requests);
    for (unsigned variable : reader_->known[level - 1]) carry(before.values[variable], stage.values[variable]);
    for (size_t f = 0; f < factors_; ++f) {
        if (reader_->factors[f].level < level) carry(before.found[f], stage.found[f]);
    }
    for (auto [column, variable] : loop.yields) {
        int64_t* to = stage.values[variable];
        for (unsigned i = 0; i < stage.n; ++i) to[i] = loop.map->row(stage.entries[i])[column];
    }
}

// Finds the payloads of the factors that are known from this stage on.
void Enumerator::resolve(unsigned level) {
    Stage& stage = stages_[level];
    for (size_t f = 0; f < factors_; ++f) {
        const Factor& factor = reader_->factors[f];
        if (factor.level != level) continue;
        const int64_t** found = stage.found[f];
        if (factor.loop >= 0) {
            for (unsigned i = 0; i < stage.n; ++i) found[i] = factor.map->payload(stage.entries[i]);
            continue;
        }
        KeyBlock block;
        auto key = [&](size_t row, int64_t* to) {
            for (unsigned variable : factor.variables) *to++ = stage.values[variable][row];
        };
        probe_keys(*factor.map, block, stage.n, key, [&](size_t row, const int64_t* k, uint32_t tag) {
            uint32_t id = factor.map->find(k, tag);
            found[row] = id == NIL ? nullptr : factor.map->payload(id);
        });
    }
}

// The product of a row's factors; false if one of them is not there.
bool Enumerator::multiply(Stage& stage, unsigned row, int64_t* payload, uint64_t& operations) const {
    payload[0] = 1;
    bool plain = true;
    for (size_t f = 0; f < factors_; ++f) {
        ++operations;
        const int64_t* found = stage.found[f][row];
        if (!found) return false;
        bool fits;
        if (reader_->factors[f].map->layout().plain()) {
            fits = plain ? !multiply_overflows(payload[0], found[0], &payload[0])
                         : layout_.scale(payload, found[0], payload);
        } else {
            fits = plain ? layout_.scale(payload, payload[0], found) : layout_.multiply(payload, found);
            plain = false;
        }
        if (!fits) throw Overflow();
    }
    return true;
}

namespace {

// Appends the values of a group with their counts; the place where they begin.
int64_t append_values(const Extreme& extreme, const int64_t* key, Array<int64_t>& lists, uint64_t& operations) {
    const Map& map = *extreme.map;
    size_t start = lists.size();
    lists.push(0);
    auto append = [&](uint32_t entry) {
        lists.push(map.row(entry)[extreme.value]);
        lists.push(map.payload(entry)[0]);
        ++operations;
    };
    if (extreme.groups) {
        const GroupTable& groups = extreme.groups->groups();
        Members members = extreme.groups->members(groups.find(key, groups.tag(key)));
        for (uint32_t i = 0; i < members.n; ++i) append(members.begin()[i]);
    } else {
        for (uint32_t entry = 0; entry < map.high(); ++entry) {
            if (map.alive(entry)) append(entry);
        }
    }
    lists[start] = static_cast<int64_t>(lists.size() - start - 1) / 2;
    return static_cast<int64_t>(start);
}

// The positions, from 0 on, of the values that a percentile of so many is made of: as Spark computes them, in floats.
std::pair<int64_t, int64_t> positions(const Extreme& extreme, int64_t n) {
    int64_t lower, upper;
    if (extreme.function == Extreme::Function::Discrete) {
        lower = upper =
            std::max(int64_t{0}, static_cast<int64_t>(std::ceil(static_cast<double>(n) * extreme.fraction)) - 1);
    } else {
        double position = static_cast<double>(n - 1) * extreme.fraction;
        lower = static_cast<int64_t>(std::floor(position));
        upper = static_cast<int64_t>(std::ceil(position));
    }
    lower = std::min(lower, n - 1);
    upper = std::min(upper, n - 1);
    return extreme.descending ? std::pair{n - 1 - upper, n - 1 - lower} : std::pair{lower, upper};
}

// Appends what stands for the values of a group in a percentile: NULL, the value at its position, and the next one if
// it is between two, each with the copies that are there for it. `count` is how often other tables have the row in all.
int64_t append_percentile(const Extreme& extreme, const int64_t* key, const int64_t* null_row, int64_t count,
                          Array<int64_t>& lists, uint64_t& operations) {
    const Map& map = *extreme.map;
    size_t start = lists.size();
    lists.push(0);
    auto append = [&](int64_t value, int64_t copies) {
        lists.push(value);
        lists.push(copies);
        ++lists[start];
    };
    uint32_t null = map.find(null_row);
    int64_t nulls = null == NIL ? 0 : map.payload(null)[0], known = extreme.sorted->total(key);
    if (nulls) append(NULL_CODE, nulls);
    if (known > 0) {
        int64_t times = std::max(int64_t{1}, count / (known + nulls)), low_end, high_end;
        auto [low, high] = positions(extreme, known * times);
        uint32_t first = extreme.sorted->at(key, low / times, low_end, operations);
        uint32_t second = extreme.sorted->at(key, high / times, high_end, operations);
        append(map.row(first)[extreme.value], first == second ? known : low_end);
        if (first != second) append(map.row(second)[extreme.value], known - low_end);
    }
    return static_cast<int64_t>(start);
}

}  // namespace

int64_t Enumerator::extreme(const Extreme& extreme, Stage& stage, unsigned row, int64_t count, Block& block,
                            uint64_t& operations) const {
    int64_t key[Map::MAX_ARITY], whole[Map::MAX_ARITY];
    unsigned n = 0;
    for (unsigned i = 0; i < extreme.map->arity(); ++i) {
        whole[i] = i == extreme.value ? NULL_CODE : stage.values[extreme.variables[i]][row];
        if (i != extreme.value) key[n++] = whole[i];
    }
    if (extreme.function == Extreme::Function::Values) return append_values(extreme, key, block.lists, operations);
    if (extreme.listed()) return append_percentile(extreme, key, whole, count, block.lists, operations);
    if (extreme.function != Extreme::Function::CountDistinct) {
        uint32_t id = extreme.sorted->extreme(key, extreme.function == Extreme::Function::Max);
        return id == NIL ? NULL_CODE : extreme.map->row(id)[extreme.value];
    }
    uint64_t size = extreme.map->size();
    if (extreme.groups) {
        const GroupTable& groups = extreme.groups->groups();
        size = extreme.groups->size(groups.find(key, groups.tag(key)));
    }
    return static_cast<int64_t>(size) - (extreme.map->find(whole) != NIL);
}

// Appends whole rows of the last stage.
void Enumerator::emit(Block& block, size_t limit, uint64_t& operations) {
    Stage& stage = stages_.back();
    unsigned words = reader_->layout.words;
    unsigned first = stage.at, end = first + static_cast<unsigned>(std::min<size_t>(limit, stage.n - first));
    uint32_t* kept = stage.parents;  // of the last stage nobody asks for them any more
    block.payloads.resize((block.n + end - first) * words);
    unsigned n = 0;
    for (unsigned row = first; row < end; ++row) {
        kept[n] = row;
        n += multiply(stage, row, block.payloads.data() + (block.n + n) * words, operations);
    }
    stage.at = end;
    block.payloads.resize((block.n + n) * words);
    auto append = [&](Array<int64_t>& to, const auto* from) {
        to.resize(block.n + n);
        for (unsigned i = 0; i < n; ++i) to[block.n + i] = from[kept[i]];
    };
    for (size_t i = 0; i < reader_->outputs.size(); ++i) append(block.columns[i], stage.values[reader_->outputs[i]]);
    if (block.numbered) append(block.requests, stage.requests);
    for (size_t e = 0; e < reader_->extremes.size(); ++e) {
        operations += n;
        for (unsigned i = 0; i < n; ++i) {
            int64_t count = block.payloads[(block.n + i) * words];
            block.extremes[e].push(extreme(reader_->extremes[e], stage, kept[i], count, block, operations));
        }
    }
    block.n += n;
}

bool Enumerator::fill(Block& block, size_t limit, uint64_t& operations) {
    floats_.clear();
    unsigned last = static_cast<unsigned>(stages_.size()) - 1;
    Stage& stage = stages_[last];
    for (size_t stop = block.n + limit; block.n < stop;) {
        if (stage.at == stage.n) {
            unsigned most = static_cast<unsigned>(std::min<size_t>(capacity_, stop - block.n));
            if (!refill(last, most, operations)) return false;
            capacity_ = std::min(MANY, capacity_ * 2);
        }
        emit(block, stop - block.n, operations);
    }
    return true;
}

}  // namespace ivme
