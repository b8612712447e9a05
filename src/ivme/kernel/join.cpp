// Joins: worst-case optimal for several reads, a chunk of candidates at a time.
//
// Operations are counted as engine/reference/interpreter.py does the work: a size for each read until one is zero, one
// for each candidate, a look-up for each read until one fails. The kernel itself does less: who proposed a candidate is
// not asked again.
#include "machine.hpp"
#include "portable.hpp"

namespace ivme {

// Where the columns of a key lie, for the candidates of a join: in the origin, or among the new values.
class Machine::CandidateKey {
public:
    CandidateKey(const JoinStep& step, const Delta& origin, const Candidates& candidates,
                 const std::vector<unsigned>& columns)
        : candidates_(candidates), added_(step.added), arity_(count_of(columns)) {
        for (unsigned i = 0; i < arity_; ++i) {
            known_[i] = columns[i] < step.known;
            from_[i] =
                known_[i] ? origin.columns[columns[i]].data() : candidates.values.data() + (columns[i] - step.known);
        }
    }
    void gather(uint32_t candidate, int64_t* key) const {
        size_t row = candidates_.rows[candidate], place = static_cast<size_t>(candidate) * added_;
        for (unsigned i = 0; i < arity_; ++i) key[i] = from_[i][known_[i] ? row : place];
    }

private:
    const Candidates& candidates_;
    unsigned added_, arity_;
    bool known_[Map::MAX_ARITY];
    const int64_t* from_[Map::MAX_ARITY];
};

void Machine::join(const JoinStep& step, Trigger& trigger) {
    Delta& target = trigger.registers[step.target];
    target.clear();
    if (reads_nothing(step, trigger)) {
        if (step.fused) trigger.registers[step.sum_target].clear();
        return;
    }
    for (const Read& read : step.reads) {
        if (read.overlay >= 0) overlay(trigger, trigger.overlays[read.overlay]);
    }
    if (step.fused) {
        chunk_.shape(step.known + step.added, target.layout);
        consolidator_.begin(&trigger.registers[step.sum_target], trigger.registers[step.origin].n);
    }
    candidates_.n = 0;
    candidates_.values.reserve(static_cast<size_t>(CHUNK) * step.added);
    candidates_.payloads.reserve(static_cast<size_t>(CHUNK) * target.layout.words);
    if (!step.added) {
        look_up(step, trigger);
    } else if (step.reads.size() == 1 && step.reads[0].groups && step.reads[0].overlay < 0) {
        extend_by_one(step, trigger);
    } else {
        extend(step, trigger);
    }
    if (step.fused) consolidator_.end();
}

// Whether there is nothing to join: no row, or a read without entries, as the heavy parts of data without skew.
bool Machine::reads_nothing(const JoinStep& step, const Trigger& trigger) {
    if (!trigger.registers[step.origin].n) return true;
    return std::any_of(step.reads.begin(), step.reads.end(), [&](const Read& read) {
        if (read.overlay >= 0 && trigger.registers[trigger.overlays[read.overlay].pending].n) return false;
        return read.target->size() == 0;
    });
}

void Machine::look_up(const JoinStep& step, Trigger& trigger) {
    size_t n = trigger.registers[step.origin].n;
    for (size_t start = 0; start < n; start += CHUNK) {
        unsigned count = static_cast<unsigned>(std::min<size_t>(CHUNK, n - start));
        for (unsigned i = 0; i < count; ++i) {
            candidates_.rows[i] = static_cast<uint32_t>(start + i);
            candidates_.proposers[i] = NOBODY;
        }
        candidates_.n = count;
        flush(step, trigger);
    }
}

void Machine::extend(const JoinStep& step, Trigger& trigger) {
    const Delta& origin = trigger.registers[step.origin];
    unsigned reads = count_of(step.reads);
    groups_.resize(static_cast<size_t>(BLOCK) * reads * 2);
    uint32_t rows[BLOCK];
    for (size_t start = 0; start < origin.n; start += BLOCK) {
        unsigned alive = static_cast<unsigned>(std::min<size_t>(BLOCK, origin.n - start));
        for (unsigned i = 0; i < alive; ++i) rows[i] = i;
        for (unsigned r = 0; r < reads && alive; ++r) alive = find_groups(step, origin, start, r, rows, alive);
        for (unsigned i = 0; i < alive; ++i) {
            const uint64_t* groups = groups_.data() + static_cast<size_t>(rows[i]) * reads * 2;
            propose(step, trigger, start + rows[i], groups, groups + reads);
        }
    }
    if (candidates_.n) flush(step, trigger);
}

// Looks up the groups of some rows of a block in a read; keeps the rows for which it has any match.
unsigned Machine::find_groups(const JoinStep& step, const Delta& origin, size_t start, unsigned r, uint32_t* rows,
                              unsigned count) {
    const Read& read = step.reads[r];
    unsigned reads = count_of(step.reads), kept = 0;
    bool pending = read.overlay >= 0;
    operations += static_cast<uint64_t>(count) * (pending ? 2 : 1);
    if (!read.groups) return count;
    KeyColumns columns(origin, read.group_key);
    auto find = [&](const GroupIndex& index, unsigned place) {
        probe_keys(
            index, block_, count, [&](size_t i, int64_t* to) { columns.gather(start + rows[i], to); },
            [&](size_t i, const int64_t* key, uint32_t tag) {
                groups_[rows[i] * reads * 2 + place] = index.find(key, tag);
            });
    };
    find(*read.groups, r);
    if (pending) find(*read.pending_groups, reads + r);
    for (unsigned i = 0; i < count; ++i) {
        const uint64_t* groups = groups_.data() + static_cast<size_t>(rows[i]) * reads * 2;
        if (groups[r] != NIL || (pending && groups[reads + r] != NIL)) rows[kept++] = rows[i];
    }
    return kept;
}

// The read with the fewest matches proposes, the first of them if several have as few.
void Machine::propose(const JoinStep& step, Trigger& trigger, size_t row, const uint64_t* groups,
                      const uint64_t* pending) {
    unsigned best = 0;
    uint64_t fewest = ~uint64_t{0};
    for (unsigned r = 0; r < step.reads.size(); ++r) {
        const Read& read = step.reads[r];
        uint64_t size = read.groups ? read.groups->size(groups[r]) : read.target->size();
        if (read.overlay >= 0) {
            size += read.groups ? read.pending_groups->size(pending[r]) : read.pending_target->size();
        }
        if (size < fewest) {
            fewest = size;
            best = r;
        }
    }
    const Read& read = step.reads[best];
    auto each = [&](const Map* target, const GroupIndex* index, uint64_t group, bool is_pending) {
        if (index) {
            Members members = index->members(group);
            if (!is_pending) return push_all(step, trigger, row, best, members);
            for (uint32_t m = 0; m < members.n; ++m) push(step, trigger, row, best, members.begin()[m], is_pending);
            return;
        }
        for (uint32_t id = 0; id < target->high(); ++id) {
            if (target->alive(id)) push(step, trigger, row, best, id, is_pending);
        }
    };
    each(read.target, read.groups, groups[best], false);
    if (read.overlay >= 0) each(read.pending_target, read.pending_groups, pending[best], true);
}

void Machine::push(const JoinStep& step, Trigger& trigger, size_t row, unsigned read, uint32_t entry, bool is_pending) {
    if (is_pending) {
        const Read& proposer = step.reads[read];
        const Map& target = *proposer.pending_target;
        ++operations;
        if (proposer.target->find(target.row(entry), target.tag(target.row(entry))) != NIL) return;
    }
    ++operations;
    unsigned n = candidates_.n;
    candidates_.rows[n] = static_cast<uint32_t>(row);
    candidates_.entries[n] = entry;
    candidates_.proposers[n] = static_cast<uint8_t>(read);
    candidates_.pending[n] = is_pending;
    if (++candidates_.n == CHUNK) flush(step, trigger);
}

void Machine::push_all(const JoinStep& step, Trigger& trigger, size_t row, unsigned read, const Members& members) {
    operations += members.n;
    const uint32_t* ids = members.begin();
    for (uint32_t m = 0; m < members.n;) {
        unsigned start = candidates_.n;
        unsigned count = std::min<uint32_t>(CHUNK - start, members.n - m);
        for (unsigned i = 0; i < count; ++i) {
            candidates_.rows[start + i] = static_cast<uint32_t>(row);
            candidates_.entries[start + i] = ids[m + i];
            candidates_.proposers[start + i] = static_cast<uint8_t>(read);
            candidates_.pending[start + i] = false;
        }
        m += count;
        candidates_.n += count;
        if (candidates_.n == CHUNK) flush(step, trigger);
    }
}

void Machine::flush(const JoinStep& step, Trigger& trigger) {
    poll_interrupt();
    Candidates& c = candidates_;
    const Delta& origin = trigger.registers[step.origin];
    const Layout& layout = trigger.registers[step.target].layout;
    auto record = [&](unsigned i) {
        const Read& read = step.reads[c.proposers[i]];
        return (c.pending[i] ? read.pending_target : read.target)->row(c.entries[i]);
    };
    if (step.added) {
        constexpr unsigned AHEAD = 12;
        for (unsigned i = 0; i < std::min(c.n, AHEAD); ++i) prefetch_line(record(i));
        for (unsigned i = 0; i < c.n; ++i) {
            if (i + AHEAD < c.n) prefetch_line(record(i + AHEAD));
            const int64_t* row = record(i);
            const auto& yields = step.reads[c.proposers[i]].yields;
            for (unsigned j = 0; j < step.added; ++j) c.values[i * step.added + j] = row[yields[j]];
        }
    }
    for (unsigned i = 0; i < c.n; ++i) {
        std::copy_n(origin.payload(c.rows[i]), origin.layout.words, c.payloads.data() + i * layout.words);
        c.selected[i] = i;
    }
    c.alive = c.n;
    c.plain = origin.layout.plain();
    for (unsigned r = 0; r < step.reads.size(); ++r) {
        if (step.reads[r].overlay >= 0) {
            check_overlay(step, trigger, r);
        } else {
            check(step, trigger, r);
        }
        if (step.reads[r].payload && !step.reads[r].map->layout().plain()) c.plain = false;
    }
    emit(step, trigger);
    c.n = 0;
}

void Machine::multiply(const Read& read, const Layout& layout, int64_t* payload, const int64_t* found) {
    bool fits;
    if (read.map->layout().plain()) {
        if (candidates_.plain) {
            fits = !multiply_overflows(payload[0], found[0], &payload[0]);
        } else {
            fits = layout.scale(payload, found[0], payload);
        }
    } else if (candidates_.plain) {
        fits = layout.scale(payload, payload[0], found);
    } else {
        fits = layout.multiply(payload, found);
    }
    if (!fits) throw Overflow();
}

void Machine::check(const JoinStep& step, Trigger& trigger, unsigned r) {
    Candidates& c = candidates_;
    const Read& read = step.reads[r];
    const Delta& origin = trigger.registers[step.origin];
    const Layout& layout = trigger.registers[step.target].layout;
    operations += c.alive;
    unsigned kept = 0;
    CandidateKey columns(step, origin, c, read.look);
    auto keep = [&](uint32_t candidate, uint32_t entry) {
        int64_t* payload = c.payloads.data() + static_cast<size_t>(candidate) * layout.words;
        if (read.payload) multiply(read, layout, payload, read.target->payload(entry));
        c.selected[kept++] = candidate;
    };
    for (unsigned start = 0, end; start < c.alive; start = end) {
        // A run of candidates that this read proposed itself needs no look-up; the others are probed together.
        bool own = c.proposers[c.selected[start]] == r;
        end = start + 1;
        while (end < c.alive && (c.proposers[c.selected[end]] == r) == own) ++end;
        if (own) {
            for (unsigned i = start; i < end; ++i) keep(c.selected[i], c.entries[c.selected[i]]);
            continue;
        }
        probe_keys(
            *read.target, block_, end - start,
            [&](size_t i, int64_t* key) { columns.gather(c.selected[start + i], key); },
            [&](size_t i, const int64_t* key, uint32_t tag) {
                uint32_t entry = read.target->find(key, tag);
                if (entry != NIL) keep(c.selected[start + i], entry);
            });
    }
    c.alive = kept;
}

void Machine::check_overlay(const JoinStep& step, Trigger& trigger, unsigned r) {
    Candidates& c = candidates_;
    const Read& read = step.reads[r];
    const Delta& origin = trigger.registers[step.origin];
    const Delta& pending = trigger.registers[trigger.overlays[read.overlay].pending];
    const Layout& layout = trigger.registers[step.target].layout;
    total_.resize(read.map->layout().words);
    CandidateKey columns(step, origin, c, read.look);
    unsigned kept = 0;
    probe_keys(
        *read.target, block_, c.alive, [&](size_t i, int64_t* key) { columns.gather(c.selected[i], key); },
        [&](size_t i, const int64_t* key, uint32_t tag) {
            uint32_t candidate = c.selected[i];
            uint32_t old = read.target->find(key, tag);
            ++operations;
            if (read.partial) {
                operations += old == NIL;
                if (old != NIL || read.pending_target->find(key, tag) != NIL) c.selected[kept++] = candidate;
                return;
            }
            ++operations;
            uint32_t fresh = read.pending_target->find(key, tag);
            const int64_t* found = old == NIL ? nullptr : read.target->payload(old);
            if (fresh != NIL) {
                const int64_t* change = pending.payload(read.pending_target->payload(fresh)[0] - 1);
                if (found && read.map->layout().add(total_.data(), found, change)) throw Overflow();
                found = found ? total_.data() : change;
            }
            if (!found || !found[0]) return;
            int64_t* payload = c.payloads.data() + static_cast<size_t>(candidate) * layout.words;
            if (read.payload) multiply(read, layout, payload, found);
            c.selected[kept++] = candidate;
        });
    c.alive = kept;
}

void Machine::emit(const JoinStep& step, Trigger& trigger) {
    Candidates& c = candidates_;
    const Delta& origin = trigger.registers[step.origin];
    Delta& target = step.fused ? chunk_ : trigger.registers[step.target];
    if (step.fused) chunk_.clear();
    size_t start = target.extend(c.alive);
    for (unsigned column = 0; column < step.known; ++column) {
        const int64_t* from = origin.columns[column].data();
        int64_t* to = target.columns[column].data() + start;
        for (unsigned i = 0; i < c.alive; ++i) to[i] = from[c.rows[c.selected[i]]];
    }
    for (unsigned j = 0; j < step.added; ++j) {
        int64_t* to = target.columns[step.known + j].data() + start;
        for (unsigned i = 0; i < c.alive; ++i) to[i] = c.values[c.selected[i] * step.added + j];
    }
    unsigned words = target.layout.words;
    for (unsigned i = 0; i < c.alive; ++i) {
        std::copy_n(c.payloads.data() + c.selected[i] * words, words, target.payloads.data() + (start + i) * words);
    }
    if (!step.fused) return;
    operations += c.alive;
    consolidator_.add(chunk_, step.sum_columns, 0, chunk_.n);
}

}  // namespace ivme
