#include "cursor.hpp"

namespace ivme {

Enumerator::Enumerator(const Reader& reader)
    : reader_(reader),
      levels_(reader.loops.size()),
      values_(reader.variables),
      found_(reader.factors.size()),
      payload_(reader.layout.words) {}

void Enumerator::open(const int64_t* inputs, bool nulls_match) {
    done_ = false;
    for (unsigned i = 0; i < reader_.inputs; ++i) {
        values_[i] = inputs[i];
        if (inputs[i] == NULL_CODE && !nulls_match) done_ = true;
    }
    depth_ = 0;
    fresh_ = true;
}

void Enumerator::prefetch(const int64_t* inputs) const {
    if (reader_.loops.empty()) return;
    const Loop& loop = reader_.loops[0];
    int64_t key[Map::MAX_ARITY];
    for (unsigned i = 0; i < loop.key.size(); ++i) key[i] = inputs[loop.key[i]];
    if (loop.groups) {
        loop.groups->groups().prefetch(loop.groups->groups().tag(key));
    } else if (loop.checks) {
        loop.map->prefetch(loop.map->tag(key));
    }
}

void Enumerator::enter(unsigned level, uint64_t& operations) {
    const Loop& loop = reader_.loops[level];
    Level& state = levels_[level];
    int64_t key[Map::MAX_ARITY];
    for (unsigned i = 0; i < loop.key.size(); ++i) key[i] = values_[loop.key[i]];
    state.at = 0;
    if (loop.checks) {
        ++operations;
        state.members = {1, loop.map->find(key), nullptr};
        state.end = state.members.one != NIL;
    } else if (loop.groups) {
        state.members = loop.groups->members(loop.groups->groups().find(key, loop.groups->groups().tag(key)));
        state.end = state.members.n;
    } else {
        state.members = {};
        state.end = loop.map->high();
    }
    state.ids = state.members.n == 1 ? nullptr : state.members.many;
}

// Moves to the next entry of a loop and sets its variables; false at its end.
bool Enumerator::advance(unsigned level) {
    const Loop& loop = reader_.loops[level];
    Level& state = levels_[level];
    if (!loop.checks && !loop.groups) {
        while (state.at < state.end && !loop.map->alive(state.at)) ++state.at;
        if (state.at == state.end) return false;
        state.entry = state.at++;
    } else {
        if (state.at == state.end) return false;
        if (state.ids && state.at + 8 < state.end) __builtin_prefetch(loop.map->row(state.ids[state.at + 8]));
        state.entry = state.ids ? state.ids[state.at] : state.members.one;
        ++state.at;
    }
    const int64_t* row = loop.map->row(state.entry);
    for (auto [column, variable] : loop.yields) values_[variable] = row[column];
    return true;
}

void Enumerator::resolve(unsigned level) {
    for (size_t f = 0; f < reader_.factors.size(); ++f) {
        const Factor& factor = reader_.factors[f];
        if (factor.level != level) continue;
        if (factor.loop >= 0) {
            found_[f] = factor.map->payload(levels_[static_cast<size_t>(factor.loop)].entry);
            continue;
        }
        int64_t key[Map::MAX_ARITY];
        for (unsigned i = 0; i < factor.variables.size(); ++i) key[i] = values_[factor.variables[i]];
        uint32_t id = factor.map->find(key);
        found_[f] = id == NIL ? nullptr : factor.map->payload(id);
    }
}

bool Enumerator::emit(Block& block, uint64_t& operations) {
    int64_t* payload = payload_.data();
    payload[0] = 1;
    bool plain = true;
    for (size_t f = 0; f < found_.size(); ++f) {
        ++operations;
        const int64_t* found = found_[f];
        if (!found) return false;
        bool fits;
        if (reader_.factors[f].map->layout().plain()) {
            fits = plain ? !multiply_overflows(payload[0], found[0], &payload[0])
                         : reader_.layout.scale(payload, found[0], payload);
        } else {
            fits = plain ? reader_.layout.scale(payload, payload[0], found) : reader_.layout.multiply(payload, found);
            plain = false;
        }
        if (!fits) throw Overflow();
    }
    for (size_t i = 0; i < reader_.outputs.size(); ++i) block.columns[i].push(values_[reader_.outputs[i]]);
    for (unsigned w = 0; w < reader_.layout.words; ++w) block.payloads.push(payload[w]);
    for (size_t e = 0; e < reader_.extremes.size(); ++e) {
        ++operations;
        block.extremes[e].push(extreme(reader_.extremes[e]));
    }
    ++block.n;
    return true;
}

int64_t Enumerator::extreme(const Extreme& extreme) const {
    int64_t key[Map::MAX_ARITY], whole[Map::MAX_ARITY];
    unsigned n = 0;
    for (unsigned i = 0; i < extreme.map->arity(); ++i) {
        whole[i] = i == extreme.value ? NULL_CODE : values_[extreme.variables[i]];
        if (i != extreme.value) key[n++] = whole[i];
    }
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

bool Enumerator::fill(Block& block, size_t limit, uint64_t& operations) {
    unsigned deepest = reader_.loops.size();
    if (fresh_ && !done_) {
        fresh_ = false;
        resolve(0);
        if (deepest) enter(0, operations);
        if (!deepest) {
            emit(block, operations);
            done_ = true;
        }
    }
    size_t stop = block.n + limit;
    while (!done_) {
        if (block.n >= stop) return true;
        if (!advance(depth_)) {
            if (depth_-- == 0) done_ = true;
            continue;
        }
        if (!reader_.loops[depth_].checks) ++operations;
        resolve(depth_ + 1);
        if (depth_ + 1 == deepest) {
            emit(block, operations);
        } else {
            enter(++depth_, operations);
        }
    }
    return false;
}

}  // namespace ivme
