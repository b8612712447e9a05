// What the loads of a trigger have found before the trigger runs.
#pragma once

#include <vector>

#include "delta.hpp"

namespace ivme {

// By piece of the rows.
class LoadedJob {
public:
    void begin(uint64_t trigger, size_t pieces) {
        trigger_ = trigger;
        pieces_.resize(pieces);
        for (Piece& piece : pieces_) piece.n = 0;
    }
    size_t pieces() const { return pieces_.size(); }
    bool is_of(uint64_t trigger) const { return trigger_ == trigger; }

    // Where the next load of a piece goes, which counts when it is kept.
    Delta& next(size_t number, unsigned target) {
        Piece& piece = pieces_[number];
        if (piece.n == piece.found.size()) piece.found.emplace_back();
        piece.found[piece.n].target = target;
        return piece.found[piece.n].delta;
    }
    void keep(size_t piece) { ++pieces_[piece].n; }

    bool has(size_t piece, unsigned target) const { return find(piece, target) < pieces_[piece].n; }
    // Exchanges what was loaded into a register for what the register has; false if it was not loaded.
    bool take(size_t number, unsigned target, Delta& into) {
        Piece& piece = pieces_[number];
        size_t at = find(number, target);
        if (at == piece.n) return false;
        std::swap(piece.found[at].delta, into);
        return true;
    }

    void trim() noexcept {
        for (Piece& piece : pieces_) {
            for (Loaded& each : piece.found) each.delta.trim();
        }
    }

private:
    struct Loaded {
        unsigned target;
        Delta delta;
    };
    struct Piece {
        std::vector<Loaded> found;  // buffers of batches before come behind
        size_t n = 0;
    };

    size_t find(size_t number, unsigned target) const {
        const Piece& piece = pieces_[number];
        size_t at = 0;
        while (at < piece.n && piece.found[at].target != target) ++at;
        return at;
    }

    uint64_t trigger_ = 0;
    std::vector<Piece> pieces_;
};

struct LoadedRows {
    Array<int64_t> weights;
    std::vector<LoadedJob> jobs;  // as a path has its triggers
};

}  // namespace ivme
