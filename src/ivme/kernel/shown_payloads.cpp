#include "shown_payloads.hpp"

namespace ivme {

namespace {

// A wide sum as Python's integer; nearly all fit one word.
nb::object whole_number(const int64_t* words, unsigned width) {
    unsigned top = width - 1;
    while (top && words[top] == words[top - 1] >> 63) --top;
    nb::object number = nb::int_(words[top]);
    while (top--) number = (number << nb::int_(64)) | nb::int_(static_cast<uint64_t>(words[top]));
    return number;
}

// A sum in Python: a float, or a whole number of any size.
nb::object shown_sum(Slot slot, const int64_t* word, const ShownFloats& floats, size_t place, size_t row) {
    if (slot == Slot::F64) return floats.value(place, row);
    if (slot == Slot::JointF64) return nb::float_(double_of(*word));
    return whole_number(word, width(slot));
}

}  // namespace

nb::list slot_lists(const Layout& layout, const Array<int64_t>& payloads, size_t n, const ShownFloats& floats) {
    nb::list slots;
    unsigned at = 1;
    for (size_t s = 0; s < layout.slots.size(); ++s) {
        Slot slot = layout.slots[s];
        nb::list values;
        for (size_t i = 0; i < n; ++i) {
            const int64_t* word = payloads.data() + i * layout.words + at;
            values.append(shown_sum(slot, word, floats, s, i));
        }
        slots.append(values);
        at += width(slot);
    }
    return slots;
}

nb::object payload_object(const Layout& layout, const int64_t* payload, const ShownFloats& floats) {
    nb::list values;
    values.append(payload[0]);
    unsigned at = 1;
    for (size_t s = 0; s < layout.slots.size(); ++s) {
        Slot slot = layout.slots[s];
        values.append(shown_sum(slot, payload + at, floats, s, 0));
        at += width(slot);
    }
    return nb::tuple(values);
}

ShownFloats::ShownFloats(const Layout& layout, const int64_t* payloads, size_t n, bool in_full) : exact(in_full) {
    if (!layout.has_floats) return;
    rounded.resize(layout.slots.size());
    full.resize(layout.slots.size());
    unsigned at = 1;
    for (size_t s = 0; s < layout.slots.size(); ++s) {
        if (layout.slots[s] == Slot::F64) {
            if (exact) {
                full[s].resize(n);
            } else {
                rounded[s].resize(n);
            }
            for (size_t i = 0; i < n; ++i) {
                const int64_t* sum = payloads + i * layout.words + at;
                if (exact) {
                    full[s][i].add(sum, 1);
                } else {
                    rounded[s][i] = rounded_float(sum);
                }
            }
        }
        at += width(layout.slots[s]);
    }
}

nb::object ShownFloats::value(size_t slot, size_t row) const {
    if (!exact) return nb::float_(rounded[slot][row]);
    const FullFloat& sum = full[slot][row];
    nb::bytes words(reinterpret_cast<const char*>(sum.words), sizeof(sum.words));
    nb::object whole = nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type)).attr("from_bytes");
    nb::object units = whole(words, "little", nb::arg("signed") = true);
    return nb::make_tuple(units, sum.positive, sum.negative, sum.undefined);
}

nb::tuple payload_arrays(const Layout& layout, Array<int64_t> payloads, size_t n, ShownFloats floats) {
    nb::list slots;
    if (layout.plain()) return nb::make_tuple(to_numpy(std::move(payloads), n), slots);
    unsigned at = 0;
    auto column = [&](unsigned width) {
        Array<int64_t> words;
        words.resize(n * width);
        for (size_t i = 0; i < n; ++i)
            std::copy_n(payloads.data() + i * layout.words + at, width, words.data() + i * width);
        at += width;
        return words;
    };
    nb::object counts = to_numpy(column(1), n);
    for (size_t s = 0; s < layout.slots.size(); ++s) {
        unsigned words = width(layout.slots[s]);
        if (layout.slots[s] == Slot::JointF64) {
            Array<double> values;
            values.resize(n);
            for (size_t i = 0; i < n; ++i) values[i] = double_of(payloads[i * layout.words + at]);
            at += words;
            slots.append(to_numpy(std::move(values), n));
            continue;
        }
        if (layout.slots[s] != Slot::F64) {
            slots.append(to_numpy(column(words), n, words));
            continue;
        }
        at += words;
        if (!floats.exact) {
            slots.append(to_numpy(std::move(floats.rounded[s]), n));
            continue;
        }
        nb::list values;
        for (size_t i = 0; i < n; ++i) values.append(floats.value(s, i));
        slots.append(values);
    }
    return nb::make_tuple(counts, slots);
}

}  // namespace ivme
