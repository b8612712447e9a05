// Rows of requests off pieces that were found for them (plan/assemble/pieces.py): a join tree of deltas.
//
// Each piece has its tuples in groups, by what they share with the piece above. From the last piece to the first,
// tuples without a group in a piece below are left out, and the others remember it. So a row takes as many steps as
// there are pieces, looks nothing up, and is made of what the request found when it came, whatever is written later.
#pragma once

#include <cstdint>
#include <vector>

#include "codes.hpp"
#include "cursor.hpp"
#include "delta.hpp"
#include "groups.hpp"

namespace ivme {

struct Piece {
    int parent = -1;                // -1: it hangs below the request
    std::vector<unsigned> key;      // its columns that the parent has, or of the request's inputs all
    std::vector<unsigned> above;    // which columns of the parent these are, or which of the inputs
    std::vector<unsigned> columns;  // those that it brings,
    std::vector<unsigned> outputs;  // and which of a row's they are
};

class PieceRows {
public:
    // The deltas of the pieces, in their order, for distinct requests. Long floats of theirs are not copied.
    PieceRows(const std::vector<Piece>& pieces, const std::vector<const Delta*>& deltas, const Layout& layout,
              const Seed& seed, uint64_t& operations);

    // Begins with the rows of a request, whose inputs these are.
    void open(const int64_t* inputs);
    // Appends at most `limit` rows of it and returns whether there may be more; long floats of products are in
    // `floats`.
    bool fill(Block& block, size_t limit, FloatPool& floats, uint64_t& operations);
    // Marks all codes that rows to come may have.
    void mark_codes(CodeMarks& marks) const {
        for (const Level& level : levels_) {
            for (const auto& column : level.columns) marks.mark_all(column.data(), column.size());
        }
    }

private:
    struct Level {
        int parent;
        unsigned child = 0;  // which of its parent's children it is
        std::vector<unsigned> outputs;
        std::vector<Array<int64_t>> columns;
        Array<int64_t> payloads;
        bool plain = true;
        unsigned words = 1;
        Array<uint32_t> starts;                // where groups begin, and the last ends
        std::vector<Array<uint32_t>> matches;  // for each child, the group that goes with a tuple
        uint32_t at = 0, end = 0;
    };

    void take(Level& level, const Piece& piece, const Delta& delta, GroupTable& groups,
              std::vector<Array<uint32_t>> below);
    void enter(Level& level);
    bool advance();
    void emit(Block& block, size_t n, FloatPool& floats);

    static constexpr size_t MANY = 1024;

    std::vector<Level> levels_;
    GroupTable requests_;
    Layout layout_;
    bool more_ = false;
    std::vector<Array<uint32_t>> places_;  // for each level, the tuples of the rows that are being appended
    Array<int64_t> counts_;
    std::vector<const int64_t*> found_;
};

}  // namespace ivme
