// Cursors and batches of access requests. Locks are taken by the block, and never held while waiting for the GIL.
#include "bind.hpp"
#include "shown_payloads.hpp"

namespace ivme {

namespace {

constexpr size_t BLOCK_ROWS = 8192;

// A single request's inputs as columns.
std::vector<const int64_t*> addresses(const std::vector<int64_t>& codes) {
    std::vector<const int64_t*> columns;
    for (const int64_t& code : codes) columns.push_back(&code);
    return columns;
}

std::vector<int64_t> codes_of(const nb::sequence& given) {
    std::vector<int64_t> codes;
    for (nb::handle code : given) codes.push_back(nb::cast<int64_t>(code));
    return codes;
}

void require_size(const std::vector<int64_t>& codes, size_t wanted) {
    if (codes.size() != wanted) throw std::invalid_argument("the number of codes does not fit");
}

// An enumeration under way. Where branches have no row in common it has pinned its maps, and reads them as they were
// when it was opened; where rows come off pieces it reads no map once it is opened. Others are stale once one of their
// maps has changed.
class Cursor : public MapReader {
public:
    Cursor(Kernel& owner, std::shared_ptr<Union> reader, std::vector<int64_t> codes, bool at_once)
        : kernel(owner),
          plan(std::move(reader)),
          bound(plan),
          inputs(std::move(codes)),
          rows(*plan),
          pinned(plan->disjoint || !plan->pieces.empty()),
          whole(at_once),
          version(plan->version()) {
        rows.open(addresses(inputs), 1);
        if (!plan->pieces.empty()) {
            find_pieces();
        } else if (pinned) {
            kernel.old_maps().pin(plan->maps(), this);
        }
    }
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;
    ~Cursor() override {
        if (pinned) kernel.old_maps().unpin(this);
    }

    // Both are called under the writer's lock.
    void go_on_with(const Map& changed, const std::shared_ptr<const Map>& map) override {
        old.push_back(map);
        std::shared_ptr<Union> further = bound->over(changed, *map);
        rows.go_on_with(*further);
        bound = std::move(further);
    }
    void give_up() noexcept override { stale = true; }

    void mark_codes(CodeMarks& marks) const override { rows.mark_codes(marks); }

    bool is_stale() const { return pinned ? stale : plan->version() != version; }

    Kernel& kernel;
    std::mutex mutex;                             // two threads may share an iterator
    std::vector<std::shared_ptr<const Map>> old;  // what maps were, of those that have changed
    std::shared_ptr<Union> plan, bound;           // the reader, and the same over what maps were
    std::vector<int64_t> inputs;
    UnionCursor rows;
    bool pinned;
    bool stale = false;
    bool whole;  // all rows will be read: where that is quicker they come at once
    bool ended = false;
    uint64_t version;

private:
    void find_pieces() {
        uint64_t operations = 0;
        rows.find_pieces(operations);
        kernel.read_operations += operations;
        kernel.old_maps().hold(this);
    }
};

std::unique_ptr<Cursor> opened(Kernel& kernel, std::shared_ptr<Union> reader, std::vector<int64_t> codes, bool whole) {
    require_size(codes, reader->inputs);
    return std::make_unique<Cursor>(kernel, std::move(reader), std::move(codes), whole);
}

// Where rows come off pieces these are found now, which may take a while.
Cursor* open(Kernel& kernel, size_t id, const nb::sequence& inputs, bool whole) {
    std::vector<int64_t> codes = codes_of(inputs);
    {
        auto lock = read_lock(kernel);
        std::shared_ptr<Union> reader = kernel.reader(id);
        if (reader->pieces.empty()) return opened(kernel, std::move(reader), std::move(codes), whole).release();
    }
    nb::gil_scoped_release release;
    auto lock = kernel.reading();
    return opened(kernel, kernel.reader(id), std::move(codes), whole).release();
}

nb::list arrays(std::vector<Array<int64_t>>& columns, size_t n) {
    nb::list result;
    for (auto& column : columns) result.append(to_numpy(std::move(column), n));
    return result;
}

nb::list extreme_arrays(Block& block) {
    nb::list result = arrays(block.extremes, block.n);
    size_t words = block.lists.size();
    if (block.listed) result.append(to_numpy(std::move(block.lists), words));
    return result;
}

std::shared_ptr<Union> find_reader(Kernel& kernel, size_t id) {
    nb::gil_scoped_release release;
    auto lock = kernel.reading();
    return kernel.reader(id);
}

// So many rows are read before a writer that waits may go first: a fraction of a millisecond.
constexpr size_t SLICE = 1024, FLOAT_SLICE = 8192;

// Appends some rows and returns whether there may be more.
bool fill(Cursor& cursor, Block& block, size_t limit) {
    if (cursor.ended) return false;
    uint64_t operations = 0;
    if (cursor.whole && !cursor.pinned) {
        cursor.rows.read_all(block, operations);
        cursor.ended = true;
    } else {
        cursor.ended = !cursor.rows.fill(block, limit, operations);
    }
    cursor.kernel.read_operations += operations;
    return !cursor.ended;
}

// Long floats last for one slice, so that with them a block is no more than that.
nb::tuple next_block(Cursor& cursor, size_t limit) {
    Block block;
    ShownFloats floats;
    const Layout& layout = cursor.plan->layout;
    cursor.plan->shape(block);
    {
        nb::gil_scoped_release release;
        std::lock_guard alone(cursor.mutex);
        size_t most = layout.has_floats ? FLOAT_SLICE : SLICE;
        if (layout.has_floats) limit = std::min(limit, most);
        for (bool more = true; more && block.n < limit;) {
            auto lock = cursor.pinned ? cursor.kernel.reading_pinned() : cursor.kernel.reading();
            if (cursor.is_stale()) throw Stale();
            auto strings = cursor.kernel.hold_ordering();
            more = fill(cursor, block, std::min(most, limit - block.n));
            if (layout.has_floats) floats = ShownFloats(layout, block.payloads.data(), block.n, cursor.plan->exact);
        }
    }
    size_t n = block.n;
    nb::tuple payloads = payload_arrays(layout, std::move(block.payloads), n, std::move(floats));
    return nb::make_tuple(arrays(block.columns, n), payloads[0], payloads[1], extreme_arrays(block));
}

nb::list list_of(const Array<int64_t>& words, size_t n, unsigned step = 1, unsigned at = 0) {
    nb::list values;
    for (size_t i = 0; i < n; ++i) values.append(words.data()[i * step + at]);
    return values;
}

nb::list lists(const std::vector<Array<int64_t>>& columns, size_t n) {
    nb::list result;
    for (const auto& column : columns) result.append(list_of(column, n));
    return result;
}

// The short path of a request with few rows: lists in place of arrays, and None if there may be more than the limit, or
// if it would have to wait and must not.
nb::object request(Kernel& kernel, size_t id, const nb::sequence& inputs, size_t limit, bool waits) {
    std::vector<int64_t> codes = codes_of(inputs);
    std::shared_ptr<Union> reader;
    Block block;
    ShownFloats floats;
    {
        auto lock = waits ? read_lock(kernel) : kernel.try_reading();
        if (!lock.owns_lock()) return nb::none();
        reader = kernel.reader(id);
        require_size(codes, reader->inputs);
        reader->shape(block);
        auto strings = kernel.hold_ordering();
        UnionCursor rows(*reader);
        rows.open(addresses(codes), 1);
        uint64_t operations = 0;
        if (rows.fill(block, limit, operations)) limit = 0;
        if (limit) kernel.read_operations += operations;
        if (limit) floats = ShownFloats(reader->layout, block.payloads.data(), block.n, reader->exact);
    }
    if (!limit) return nb::none();
    size_t n = block.n;
    const Layout& layout = reader->layout;
    nb::list extremes = lists(block.extremes, n);
    if (block.listed) extremes.append(list_of(block.lists, block.lists.size()));
    return nb::make_tuple(lists(block.columns, n), list_of(block.payloads, n, layout.words),
                          slot_lists(layout, block.payloads, n, floats), extremes);
}

nb::tuple request_many(Kernel& kernel, size_t id, const std::vector<Codes>& columns) {
    std::shared_ptr<Union> reader = find_reader(kernel, id);
    if (columns.size() != reader->inputs) throw std::invalid_argument("a request gives every input a value");
    size_t requests = columns.empty() ? 1 : columns[0].size();
    for (const Codes& column : columns) {
        if (column.size() != requests) throw std::invalid_argument("the columns of the requests differ in length");
    }
    if (requests >= NIL) throw std::invalid_argument("a batch has at most 4 billion requests");
    Block block;
    reader->shape(block);
    block.numbered = true;
    ShownFloats floats;
    {
        nb::gil_scoped_release release;
        auto lock = kernel.reading();
        auto strings = kernel.hold_ordering();
        uint64_t operations = 0;
        UnionCursor rows(*reader);
        std::vector<const int64_t*> inputs;
        for (const Codes& column : columns) inputs.push_back(column.data());
        rows.open(std::move(inputs), requests);
        rows.read_all(block, operations);
        kernel.read_operations += operations;
        floats = ShownFloats(reader->layout, block.payloads.data(), block.n, reader->exact);
    }
    size_t n = block.n;
    nb::tuple payloads = payload_arrays(reader->layout, std::move(block.payloads), n, std::move(floats));
    return nb::make_tuple(to_numpy(std::move(block.requests), n), arrays(block.columns, n), payloads[0], payloads[1],
                          extreme_arrays(block));
}

nb::tuple scan(Kernel& kernel, size_t id) {
    std::vector<Array<int64_t>> columns;
    Array<int64_t> payloads;
    Layout layout;
    ShownFloats floats;
    size_t n = 0;
    {
        nb::gil_scoped_release release;
        auto lock = kernel.reading();
        const Map& map = kernel.map(id);
        layout = map.layout();
        columns.resize(map.arity());
        for (auto& column : columns) column.reserve(map.size());
        payloads.reserve(map.size() * layout.words);
        for (uint32_t entry = 0; entry < map.high(); ++entry) {
            if (!map.alive(entry)) continue;
            ++n;
            for (unsigned c = 0; c < map.arity(); ++c) columns[c].push(map.row(entry)[c]);
            for (unsigned w = 0; w < layout.words; ++w) payloads.push(map.payload(entry)[w]);
        }
        kernel.read_operations += n;
        floats = ShownFloats(layout, payloads.data(), n, false);
    }
    nb::tuple split = payload_arrays(layout, std::move(payloads), n, std::move(floats));
    return nb::make_tuple(arrays(columns, n), split[0], split[1]);
}

nb::object dump_map(Kernel& kernel, size_t id) {
    Array<int64_t> records;
    {
        nb::gil_scoped_release release;
        auto lock = kernel.reading();
        kernel.map(id).dump(records);
    }
    size_t words = records.size();
    return to_numpy(std::move(records), words);
}

nb::object get(Kernel& kernel, size_t id, const nb::sequence& given) {
    std::vector<int64_t> codes = codes_of(given), payload;
    Layout layout;
    ShownFloats floats;
    {
        nb::gil_scoped_release release;
        auto lock = kernel.reading();
        const Map& map = kernel.map(id);
        require_size(codes, map.arity());
        layout = map.layout();
        uint32_t entry = map.find(codes.data());
        if (entry != NIL) payload.assign(map.payload(entry), map.payload(entry) + layout.words);
        if (entry != NIL) floats = ShownFloats(layout, payload.data(), 1, false);
        ++kernel.read_operations;
    }
    return payload.empty() ? nb::none() : payload_object(layout, payload.data(), floats);
}

}  // namespace

void bind_reading(nb::module_& m, nb::class_<Kernel>& kernel) {
    nb::class_<Cursor>(m, "Cursor")
        .def("next_block", &next_block, nb::arg("max_rows") = BLOCK_ROWS)
        .def_ro("pinned", &Cursor::pinned);
    kernel
        .def("open", &open, nb::arg("reader"), nb::arg("inputs"), nb::arg("whole") = false,
             nb::rv_policy::take_ownership, nb::keep_alive<0, 1>())
        .def("limit_old_maps", [](Kernel& k, size_t bytes) { k.old_maps().most_bytes = bytes; })
        .def_prop_ro("pinned_maps", [](Kernel& k) { return k.old_maps().pinned(); })
        .def_prop_ro("old_bytes", [](Kernel& k) { return k.old_maps().bytes(); })
        .def("request", &request, nb::arg("reader"), nb::arg("inputs"), nb::arg("limit"), nb::arg("waits") = true)
        .def("request_many", &request_many)
        .def("scan", &scan)
        .def("dump_map", &dump_map)
        .def("get", &get);
}

}  // namespace ivme
