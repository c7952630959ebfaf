-- Going through all rows of a thread. Behind groups.lua.

-- Call `call` with each of these fields that is there and its value, having read so many at a time.
local function each_field(key, fields, size, call)
    for first = 1, #fields, size do
        local last = math.min(first + size - 1, #fields)
        local values = redis.call('HMGET', key, unpack(fields, first, last))
        for at = 1, last - first + 1 do
            if values[at] then
                call(fields[first + at - 1], values[at])
            end
        end
    end
end

-- The rows in a field, as far as it is not damaged. A damaged checkpoint has a body only.
local function columns_in(field)
    local is_whole, columns = pcall(cmsgpack.unpack, field)
    return is_whole and type(columns) == 'table' and columns or { false, nil, nil, nil, field, '' }
end

-- The end of a row's check, or of its body if it has none.
local function mark_of(check, body, size)
    local mark = (check ~= '' and check or body)
    return type(mark) == 'string' and mark:sub(-size) or ''
end
