// Joins with a single read, whose matches go into the target as they are found. Operations are counted as in join.cpp.
#include "machine.hpp"
#include "portable.hpp"

namespace ivme {

// As `extend` does it for several reads: the matches of one are all there is to see.
void Machine::extend_by_one(const JoinStep& step, Trigger& trigger) {
    const Delta& origin = trigger.registers[step.origin];
    const GroupIndex& index = *step.reads[0].groups;
    Candidates& c = candidates_;
    groups_.resize(static_cast<size_t>(BLOCK) * 2);
    uint32_t rows[BLOCK];
    for (size_t start = 0; start < origin.n; start += BLOCK) {
        unsigned alive = static_cast<unsigned>(std::min<size_t>(BLOCK, origin.n - start));
        for (unsigned i = 0; i < alive; ++i) rows[i] = i;
        alive = find_groups(step, origin, start, 0, rows, alive);
        for (unsigned i = 0; i < alive; ++i) {
            Members members = index.members(groups_[static_cast<size_t>(rows[i]) * 2]);
            operations += members.n;
            const uint32_t* ids = members.begin();
            for (uint32_t m = 0; m < members.n;) {
                unsigned count = std::min<uint32_t>(CHUNK - c.n, members.n - m);
                std::fill_n(c.rows + c.n, count, static_cast<uint32_t>(start + rows[i]));
                std::copy_n(ids + m, count, c.entries + c.n);
                m += count;
                c.n += count;
                if (c.n == CHUNK) emit_matches(step, trigger);
            }
        }
    }
    if (c.n) emit_matches(step, trigger);
}

void Machine::emit_matches(const JoinStep& step, Trigger& trigger) {
    poll_interrupt();
    Candidates& c = candidates_;
    const Read& read = step.reads[0];
    const Delta& origin = trigger.registers[step.origin];
    Delta& target = step.fused ? chunk_ : trigger.registers[step.target];
    if (step.fused) chunk_.clear();
    size_t start = target.extend(c.n);
    operations += c.n;
    for (unsigned column = 0; column < step.known; ++column) {
        const int64_t* from = origin.columns[column].data();
        int64_t* to = target.columns[column].data() + start;
        for (unsigned i = 0; i < c.n; ++i) to[i] = from[c.rows[i]];
    }
    constexpr unsigned AHEAD = 12;
    for (unsigned j = 0; j < step.added; ++j) {
        int64_t* to = target.columns[step.known + j].data() + start;
        for (unsigned i = 0; i < c.n; ++i) {
            if (!j && i + AHEAD < c.n) prefetch_line(read.target->row(c.entries[i + AHEAD]));
            to[i] = read.target->row(c.entries[i])[read.yields[j]];
        }
    }
    c.plain = origin.layout.plain();
    int64_t* payload = target.payload(start);
    bool is_plain = target.layout.plain() && read.payload, fits = true;
    for (unsigned i = 0; i < c.n && is_plain; ++i) {
        fits &= !multiply_overflows(origin.payloads[c.rows[i]], read.target->payload(c.entries[i])[0], payload + i);
    }
    if (!fits) throw Overflow();
    for (unsigned i = 0; i < c.n && !is_plain; ++i, payload += target.layout.words) {
        std::copy_n(origin.payload(c.rows[i]), origin.layout.words, payload);
        if (read.payload) multiply(read, target.layout, payload, read.target->payload(c.entries[i]));
    }
    if (step.fused) {
        operations += c.n;
        consolidator_.add(chunk_, step.sum_columns, 0, chunk_.n);
    }
    c.n = 0;
}

}  // namespace ivme
