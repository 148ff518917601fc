// Widths and places of a flit's fields, for all that reads or makes flits.
//
// From the low end: payload, destination column, destination row, column mask, row mask, length,
// maximum, reduce, multicast, last. A field that no compiled feature reads has no bits.
package noc_pkg;
  // Bits of an index below `size`.
  function automatic int index_width(int size);
    return (size > 1) ? $clog2(size) : 1;
  endfunction

  // Bits of both masks.
  function automatic int masks_width(int rows, int cols, int multicast, int reduction);
    return (multicast != 0 || reduction != 0) ? rows + cols : 0;
  endfunction

  // Bits of the length.
  function automatic int length_width(int depth, int multicast, int reduction, int cut_through);
    return (cut_through != 0 && (multicast != 0 || reduction != 0)) ? $clog2(depth + 1) : 0;
  endfunction

  // Bits of a whole flit.
  function automatic int flit_width(int rows, int cols, int depth, int payload_width,
                                    int multicast, int reduction, int cut_through);
    return payload_width + index_width(cols) + index_width(rows)
         + masks_width(rows, cols, multicast, reduction)
         + length_width(depth, multicast, reduction, cut_through)
         + ((reduction != 0) ? 2 : 0) + ((multicast != 0) ? 1 : 0) + 1;
  endfunction
endpackage
